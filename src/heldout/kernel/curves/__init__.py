"""Score tables with noise, from which every curve is read. Privacy only: no curve here."""
