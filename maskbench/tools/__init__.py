"""What is done beside measuring: training the small model, fetching data, counting instructions."""
