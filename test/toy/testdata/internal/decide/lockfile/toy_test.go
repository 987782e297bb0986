package lockfile_test

import "github.com/cofferdam-dev/cofferdam/internal/decide/lockfile/lockfiletest"

// toyFormat is an example of toy.lock.
func toyFormat() lockfiletest.Format {
	return lockfiletest.Format{
		Sample: "thing {version} {hashes}\n", Package: "thing", Version: "1.0.0",
		Hashes: "sha256:" + hex256('a'), Pinned: "sha256:" + hex256('a'),
		OtherHashes: "sha256:" + hex256('b'), OtherPinned: "sha256:" + hex256('b'),
		Weak: "md5:" + hex256('a')[:32],
	}
}
