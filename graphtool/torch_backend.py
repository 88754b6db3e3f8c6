"""`graphtool.torch_backend.variants(f)`: what torch.compile keeps of a function, and why."""

from graphtool.integrations.torch_backend import Made, Variant, Variants, variants

__all__ = ["Made", "Variant", "Variants", "variants"]
