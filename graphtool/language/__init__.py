"""Text as tokens, and the choice of the next one: what a language model needs beside its graph."""
