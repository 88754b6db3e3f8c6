"""The wing for TorchScript: archives and scripted modules, whose code is interpreted here, inside a
capture by torch.export. Of the driver, only `source` and `capture` know it.
"""
