"""Tools besides measuring: training the small model, fetching data, counting instructions."""
