"""From what each platform answers to one document."""
