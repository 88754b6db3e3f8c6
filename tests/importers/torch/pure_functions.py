"""Functions of tensors without weights of their own: a loss, a branch, loops, chance, a step."""

import torch
from torch._higher_order_ops import scan, while_loop


def loss_fn(w, b, x, y):
    """A loss as a function of its weights and data."""
    return torch.nn.functional.cross_entropy(x @ w + b, y)


def clipped(x):
    """A branch on the data."""
    return torch.cond(x.norm() > 1.0, lambda x: x / x.norm(), lambda x: x.clone(), (x,))


def root(a):
    """Newton's iteration until it has settled."""
    def going(x, gap):
        return gap > 1e-6

    def step(x, gap):
        better = 0.5 * (x + a / x)
        return better, (better - x).abs()
    return while_loop(going, step, (a.clone(), a + 1.0))[0]


def smoothed(xs, decay):
    """A running mean over the rows."""
    def step(mean, x):
        mean = decay * mean + (1 - decay) * x
        return mean, mean.clone()
    return scan(step, torch.zeros_like(xs[0]), xs)


def dropped(x):
    """Half of the values at random."""
    return x * (torch.rand_like(x) > 0.5) * 2


def sgd(w, m, b, x, y, lr):
    """One step of SGD with momentum: state in, state out."""
    g, loss = torch.func.grad_and_value(loss_fn)(w, b, x, y)
    m = 0.9 * m + g
    return w - lr * m, m, loss
