"""Reports: one self-contained page about a policy, with plots, tables, pictures and a film."""
