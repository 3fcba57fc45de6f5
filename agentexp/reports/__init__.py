"""Tables, figures and exports from run folders."""
