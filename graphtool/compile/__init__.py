"""The one way from anything to artifacts: a source, a unit of functions, C, a build directory."""
