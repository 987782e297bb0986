package lockfile

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// A lockfile's files are named as a registry's are: it knows every kind of archive
// that clients install from, and takes no wheel that no registry has.
func TestFilesAreNamedAsRegistrysAre(t *testing.T) {
	ref := pkgref.Ref{Ecosystem: pkgref.Python, Name: "a", Version: "1.0"}
	for file, want := range map[string]bool{
		"a-1.0.tar.gz": true, "a-1.0.0.zip": true, "a-1.0.txz": true, "a-1.0.tar.lzma": true,
		"a-1.0-py3-none-any.whl": true, "a-1.0-py3-none-any~.whl": false, "a-1.0-x-py3-none-any.whl": false,
		"b-1.0.tar.gz": false, "a-1.1.tar.gz": false,
	} {
		if got := isFileOf(file, ref); got != want {
			t.Errorf("%s: %v", file, got)
		}
	}
}
