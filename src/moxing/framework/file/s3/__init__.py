"""Object stores that speak the S3 protocol, for `s3://` and `obs://`.

`object_client.ObjectClient` is the interface; `clients.get_client` returns the client of a scheme. Code outside of this
room uses these two, and `etags` for part sizes. Inside: `client` on `http`, `signing`, `xml` and `responses`; transfers
in parts (`multipart`, `download`, `part_file`); `access`, `endpoints` and `credentials` decide where the store is and
which keys sign a request. urllib3 is imported with the first such URL, botocore only if its credentials are needed.
"""
