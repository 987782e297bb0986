package hostpath

import (
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Tags of an access control list's entries, as acl(5) has them in a file's attribute, and the right to
// write.
const (
	aclNamedUser  = 0x02
	aclNamedGroup = 0x08
	aclWrite      = 0x2
	aclHead       = 4
	aclEntry      = 8
)

// OthersByList tells whether a file's access control list lets somebody else write who is named in it.
// Its mode says no more of these than what they have at most.
func OthersByList(name string) (bool, error) { return othersByList(name, unix.Lgetxattr) }

// othersByList is OthersByList by a way to read an attribute.
func othersByList(name string, read func(path, attribute string, to []byte) (int, error)) (bool, error) {
	text := make([]byte, 1<<16) // as large as an attribute can be
	n, err := read(name, "system.posix_acl_access", text)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for text = text[min(n, aclHead):n]; len(text) >= aclEntry; text = text[aclEntry:] {
		tag, rights, id := binary.LittleEndian.Uint16(text), binary.LittleEndian.Uint16(text[2:]), int(binary.LittleEndian.Uint32(text[4:]))
		switch {
		case rights&aclWrite == 0 || id == 0:
		case tag == aclNamedUser && id != os.Geteuid(), tag == aclNamedGroup && id != os.Getegid():
			return true, nil
		}
	}
	return false, nil
}
