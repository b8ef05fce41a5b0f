"""Linear models of declared columns: private fits, and whether a conclusion from one holds."""
