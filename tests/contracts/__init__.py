"""Who calls a draft model, and whether the call fits."""
