# Addresses: see `urllib.parse`. Nothing here reaches a network.
