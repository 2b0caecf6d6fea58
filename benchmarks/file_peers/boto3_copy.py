"""One copy with boto3: `boto3_copy.py many|large SOURCE TARGET`. Prints the seconds with the creation of the client.

Many files use one transfer manager with 16 concurrent requests, as many as `copy_parallel` has; one file uses
`upload_file` and `download_file` with their defaults.
"""

from __future__ import annotations

import os
import sys
import time


def main() -> None:
    import boto3
    from boto3.s3.transfer import TransferConfig, create_transfer_manager

    what, source, target = sys.argv[1:]
    started = time.perf_counter()
    client = boto3.client("s3", endpoint_url=os.environ["S3_ENDPOINT"])
    if what == "large":
        if target.startswith("s3://"):
            client.upload_file(source, *_split(target))
        else:
            client.download_file(*_split(source), target)
    else:
        with create_transfer_manager(client, TransferConfig(max_concurrency=16)) as manager:
            if target.startswith("s3://"):
                bucket, prefix = _split(target)
                futures = [
                    manager.upload(os.path.join(source, name), bucket, f"{prefix}/{name}")
                    for name in sorted(os.listdir(source))
                ]
            else:
                bucket, prefix = _split(source)
                os.makedirs(target, exist_ok=True)
                pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/")
                keys = [item["Key"] for page in pages for item in page["Contents"]]
                futures = [manager.download(bucket, key, os.path.join(target, os.path.basename(key))) for key in keys]
            for future in futures:
                future.result()
    print(f"@{time.perf_counter() - started:.6f}")


def _split(url: str) -> tuple[str, str]:
    bucket, _, key = url.removeprefix("s3://").partition("/")
    return bucket, key


if __name__ == "__main__":
    main()
