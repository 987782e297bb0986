package layer

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/identity"
)

// Names of extended attributes that are worth something in a copy, beside the user's own.
const (
	opaque        = "trusted.overlay.opaque"
	accessList    = "system.posix_acl_access"
	defaultAccess = "system.posix_acl_default"
)

// largest is the most that the kernel lets a value, or a list of names, have.
const largest = 64 << 10

func keepsName(name string) bool {
	return strings.HasPrefix(name, "user.") || name == opaque || name == accessList || name == defaultAccess
}

// attributes puts a file's extended attributes into its header.
func (w *writer) attributes(f *os.File, h *tar.Header) error {
	n, err := unix.Flistxattr(int(f.Fd()), w.list[:])
	if errors.Is(err, unix.ENOTSUP) {
		return nil // there are none
	}
	if err != nil {
		return &fs.PathError{Op: "list the attributes of", Path: h.Name, Err: err}
	}
	all := map[string][]byte{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(w.list[:n]), "\x00"), "\x00") {
		if !keepsName(name) {
			continue
		}
		n, err := unix.Fgetxattr(int(f.Fd()), name, w.value[:])
		if err != nil {
			return &fs.PathError{Op: "read the attribute " + name + " of", Path: h.Name, Err: err}
		}
		if all[name] = bytes.Clone(w.value[:n]); name == accessList || name == defaultAccess {
			err = translate(all[name], w.owners, identity.InsideID)
		}
		if err != nil {
			return &fs.PathError{Op: "read the attribute " + name + " of", Path: h.Name, Err: err}
		}
	}
	if len(all) == 0 {
		return nil
	}
	data, err := json.Marshal(all)
	h.PAXRecords[attributesRecord] = string(data)
	return err
}

// attribute gives a file the extended attributes of its header.
func (r *layerReader) attribute(f *os.File, h *tar.Header) error {
	text, ok := h.PAXRecords[attributesRecord]
	if !ok {
		return nil
	}
	var all map[string][]byte
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return fmt.Errorf("the attributes of %q: %w", h.Name, err)
	}
	for name, value := range all {
		if !keepsName(name) {
			return fmt.Errorf("%q has the attribute %q, which is not kept", h.Name, name)
		}
		var err error
		if name == accessList || name == defaultAccess {
			err = translate(value, r.owners, identity.HostID)
		}
		if err == nil {
			err = unix.Fsetxattr(int(f.Fd()), name, value, 0)
		}
		if err != nil {
			return &fs.PathError{Op: "set the attribute " + name + " of", Path: h.Name, Err: err}
		}
	}
	return nil
}

// An access list, as the kernel shows it, is a version and entries of a tag, rights and an
// id, which says something of named users and groups alone.
const (
	aclHead  = 4
	aclEntry = 8
	aclUser  = 0x02
	aclGroup = 0x08
)

// translate changes the ids of an access list in place.
func translate(list []byte, owners Owners, to func([]specs.LinuxIDMapping, uint32) int) error {
	if len(list) < aclHead || (len(list)-aclHead)%aclEntry != 0 || binary.LittleEndian.Uint32(list) != 2 {
		return errors.New("it is no access list")
	}
	for at := aclHead; at < len(list); at += aclEntry {
		id := list[at+4 : at+aclEntry]
		switch binary.LittleEndian.Uint16(list[at:]) {
		case aclUser:
			binary.LittleEndian.PutUint32(id, uint32(to(owners.UIDs, binary.LittleEndian.Uint32(id))))
		case aclGroup:
			binary.LittleEndian.PutUint32(id, uint32(to(owners.GIDs, binary.LittleEndian.Uint32(id))))
		}
	}
	return nil
}
