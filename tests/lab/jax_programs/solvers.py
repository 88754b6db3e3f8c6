"""Numerical programs: filters, integrators, regressions, simulations."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.lab.jax_cases import f
from tests.lab.jax_programs import Program


def _kalman(p: Any, zs: Any) -> Any:
    def step(c: Any, z: Any) -> Any:
        x, s = p["a"] @ c[0], p["a"] @ c[1] @ p["a"].T + p["q"]
        gain = jnp.linalg.solve(p["h"] @ s @ p["h"].T + p["r"], p["h"] @ s).T
        x = x + gain @ (z - p["h"] @ x)
        return (x, (jnp.eye(4) - gain @ p["h"]) @ s), x
    return lax.scan(step, (jnp.zeros(4), jnp.eye(4)), zs)[1]


def _lorenz(s: Any) -> Any:
    """Runge and Kutta's method with steps as long as the error allows, for many starts at once."""
    def slope(v: Any) -> Any:
        x, y, z = v
        return jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    def step(c: Any) -> Any:
        t, h, v = c
        k1 = slope(v)
        k2 = slope(v + h / 2 * k1)
        k3 = slope(v + h / 2 * k2)
        k4 = slope(v + h * k3)
        new = v + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        error = jnp.abs(h / 6 * (k1 - k2 - k3 + k4)).max()
        good = error < 1e-2
        return (jnp.where(good, t + h, t), h * jnp.where(good, 1.1, 0.5), jnp.where(good, new, v))
    return lax.while_loop(lambda c: c[0] < 0.5, step, (0.0, 0.01, s))


def _gaussian_process(p: Any, x: Any, y: Any, at: Any) -> Any:
    from jax.scipy.linalg import cho_solve

    def kernel(a: Any, b: Any) -> Any:
        apart = ((a[:, None] - b[None]) ** 2).sum(-1)
        return jnp.exp(p["size"]) * jnp.exp(-0.5 * apart / jnp.exp(2 * p["scale"]))
    k = kernel(x, x) + jnp.exp(p["noise"]) * jnp.eye(x.shape[0])
    low = jnp.linalg.cholesky(k)
    alpha = cho_solve((low, True), y)
    cross = kernel(at, x)
    likelihood = -0.5 * y @ alpha - jnp.log(jnp.diagonal(low)).sum()
    return cross @ alpha, jnp.exp(p["size"]) - (cross * cho_solve((low, True), cross.T).T).sum(
        -1), likelihood


def _bodies(s: Any) -> Any:
    """Bodies that attract each other, by the leapfrog method."""
    def pull(x: Any) -> Any:
        apart = x[None] - x[:, None]
        near = ((apart ** 2).sum(-1) + 0.01) ** -1.5
        return (apart * near[..., None]).sum(1)

    def step(_: Any, c: Any) -> Any:
        x, v = c
        v = v + 0.0005 * pull(x)
        x = x + 0.001 * v
        return x, v + 0.0005 * pull(x)
    return lax.fori_loop(0, 20, step, s)


def _newton(w: Any, x: Any, y: Any) -> Any:
    """Logistic regression by Newton's method."""
    def step(v: Any, _: Any) -> Any:
        mean = jax.nn.sigmoid(x @ v)
        slope = x.T @ (mean - y) + 0.1 * v
        curve = (x * (mean * (1 - mean))[:, None]).T @ x + 0.1 * jnp.eye(x.shape[1])
        return v - jnp.linalg.solve(curve, slope), ((mean - y) ** 2).sum()
    return lax.scan(step, w, None, 6)


def _heat(u: Any) -> Any:
    """Diffusion on a torus, by Fourier transforms."""
    n = u.shape[-1]
    k = jnp.fft.fftfreq(n) * 2 * np.pi
    decay = jnp.exp(-0.05 * (k[:, None] ** 2 + k[None] ** 2))

    def step(_: Any, v: Any) -> Any:
        return jnp.fft.ifft2(jnp.fft.fft2(v) * decay).real
    return lax.fori_loop(0, 4, step, u)


def _options(key: Any) -> Any:
    """The price of an Asian option by paths of random steps."""
    def step(s: Any, k: Any) -> Any:
        s = s * jnp.exp(0.02 / 50 + 0.2 / np.sqrt(50.0) * jax.random.normal(k, s.shape))
        return s, s
    _, paths = lax.scan(step, jnp.full(1024, 100.0), jax.random.split(
        jax.random.wrap_key_data(key), 50))
    return jnp.maximum(paths.mean(0) - 100, 0).mean()


def _cloth(x: Any, v: Any) -> Any:
    """Springs between the points of a grid."""
    def pull(p: Any) -> Any:
        total = jnp.zeros_like(p)
        for axis in (0, 1):
            for way in (1, -1):
                apart = jnp.roll(p, way, axis) - p
                length = jnp.sqrt((apart ** 2).sum(-1, keepdims=True) + 1e-6)
                total += apart * (1 - 0.1 / length)
        return total

    def step(c: Any, _: Any) -> Any:
        p, w = c
        w = 0.99 * (w + 0.01 * pull(p) - jnp.array([0.0, 0.0, 0.001]))
        return (p + 0.01 * w, w), None
    return lax.scan(step, (x, v), None, 30)[0]


def PROGRAMS() -> list[Program]:
    eye = np.eye(4, dtype=np.float32)
    kalman = {"a": eye + 0.1 * np.eye(4, k=1, dtype=np.float32), "q": 0.01 * eye,
              "h": eye[:2].copy(), "r": 0.5 * np.eye(2, dtype=np.float32)}
    gp = {n: np.float32(v) for n, v in (("size", 0.1), ("scale", 0.2), ("noise", -2.0))}
    x = f(96, 3)
    points, truth = f(400, 12), (f(400, seed=1) > 0).astype(np.float32)
    return [
        Program("kalman filter", _kalman, (kalman, f(100, 2)),
                lambda p, z: ((_kalman(p, z)[:, :2] - z) ** 2).mean()),
        Program("lorenz", _lorenz, (f(3, 256) + 5,), tolerance=2e-3),
        Program("gaussian process", _gaussian_process, (gp, x, np.sin(x).sum(-1), f(32, 3, seed=2)),
                lambda *a: -_gaussian_process(*a)[2], tolerance=5e-3),
        Program("n bodies", _bodies, ((f(64, 3), f(64, 3, seed=1) / 10),),
                lambda s: (_bodies(s)[0] ** 2).mean(), tolerance=1e-3),
        Program("newton", _newton, (np.zeros(12, np.float32), points, truth), tolerance=1e-3),
        Program("heat", _heat, (f(64, 64),)),
        Program("option price", _options, (np.array([0, 7], np.uint32),)),
        Program("cloth", _cloth, (f(32, 32, 3), f(32, 32, 3, seed=1)),
                lambda p, v: (_cloth(p, v)[0] ** 2).mean(), tolerance=1e-3),
    ]
