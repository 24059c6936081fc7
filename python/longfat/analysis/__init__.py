"""Statistics, theory and claims: computes from records and returns plain data.

`longfat.presentation` draws what these modules return. Nothing here imports it.
"""
