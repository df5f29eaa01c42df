"""What the machines that serve one environment share: its records in the control root, each moved by its chart."""
