// Package archive reads the zip and tar files that publishers pack, strictly:
// an archive that two programs could unpack in two ways is refused, so that what
// was inspected is what gets installed.
//
// The path of each member is relative, slash-separated and clean, or the archive is refused.
package archive

import "io/fs"

// Limits bound an archive; a zero field takes the default.
type Limits struct {
	Members  int   // default 200,000
	Unpacked int64 // bytes of all members; default 8 GiB
	Ratio    int64 // unpacked to packed, beyond the first 64 MiB; default 200
	Path     int   // bytes of one path; default 1,024
	// Careless permits what some honest packers do to tar archives: "." inside
	// paths, zeros behind the compressed end, and a file twice. visit gets both
	// files, and must refuse the later one unless its bytes are the same.
	Careless bool
}

// Member is one entry.
type Member struct {
	Path string
	Mode fs.FileMode // type bits tell directories and links
	Size int64       // unpacked
	Link string      // target of a link, as written
	// Raised tells that it would run with its owner's or group's rights (setuid, setgid) for
	// an unpacker that minds that.
	Raised bool
	// Extended tells that an extension header gave the path, and the member's own
	// header another. Readers that lose the extension see that one.
	Extended bool
}
