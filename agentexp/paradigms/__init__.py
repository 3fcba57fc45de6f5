"""Ways of running one episode."""
