package sandbox

import (
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestPathsThatNameNoFile: no operation takes a path that is no UTF-8, or that has what lists have for
// such bytes: it would be done to another file, or a removal of nothing would be well.
func TestPathsThatNameNoFile(t *testing.T) {
	t.Parallel()
	if err := CheckFile(channel.File{Path: "/x", User: "u\xff"}); err == nil || !strings.Contains(err.Error(), "a user must be UTF-8") {
		t.Error(err)
	}
	if err := CheckFile(channel.File{Path: "/x", User: "u\ufffd"}); err != nil {
		t.Error("a user was taken for a path: ", err)
	}
	for _, op := range []channel.FileOp{channel.FileStat, channel.FileList, channel.FileMkdir, channel.FileMove, channel.FileRemove, channel.FileRead, channel.FileWrite, channel.FileWatch} {
		for path, taken := range map[string]bool{"/bad\xff.txt": false, "/bad\ufffd.txt": false, "/é\n\u2028": true} {
			for name, f := range map[string]channel.File{"path": {Op: op, Path: path}, "to": {Op: op, Path: "/x", To: path}} {
				if err := CheckFile(f); (err == nil) != taken || !taken && !errors.Is(err, fault.ErrInvalid) {
					t.Errorf("%s, %s %q: %v", op, name, path, err)
				}
			}
		}
	}
}
