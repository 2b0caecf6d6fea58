"""What the networks are built from: layers, batch normalisation, variables, the input images, the computing type.

The families import `layers.Layers`, `batch_norm.BatchNorm` and `strides`; `nets_factory` imports `images` and
`precision`. `summary` lists the layers of a network, `figures` writes what `moxing zoo` prints into `figures.json`.
Nothing here imports a family.
"""
