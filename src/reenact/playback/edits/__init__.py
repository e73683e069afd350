"""What a fork changes: requests, responses and tool results, for every provider."""
