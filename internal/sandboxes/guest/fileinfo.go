package guest

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// modeBits are the permissions, with setuid, setgid and sticky.
const modeBits = 0o7777

// Limits of what is kept as a file's metadata.
const (
	metadataPrefix   = "user."
	maxMetadata      = channel.MaxMetadata
	maxMetadataName  = 200
	maxMetadataValue = 4 << 10
	maxMetadataBytes = 16 << 10 // of one file, names and values
)

// infoOf tells of what lies at a place.
func (c *fileCall) infoOf(p *filePlace) (*channel.FileInfo, error) {
	stat, err := p.statPlace()
	if err != nil {
		return nil, err
	}
	info := c.describeFile(p.dir, p.name, p.path, stat)
	c.resolveLink(info)
	return info, nil
}

// resolveLink tells of a symbolic link what it leads to. With the user's rights.
func (c *fileCall) resolveLink(info *channel.FileInfo) {
	if info.Kind != channel.KindSymlink {
		return
	}
	end, err := locate(c.agent.config.Root, info.Path, search{follow: true})
	if err != nil {
		return
	}
	defer end.closePlace()
	if stat, err := end.statPlace(); err == nil {
		info.Resolved, info.Leads = end.real, fileKind(stat.Mode)
	}
}

// describeFile tells of the file of a name in a directory, of which stat was taken.
func (c *fileCall) describeFile(dir int, name, path string, stat unix.Stat_t) *channel.FileInfo {
	info := &channel.FileInfo{
		Path: path, Kind: fileKind(stat.Mode), Size: stat.Size, Mode: stat.Mode & modeBits,
		Owner: c.nameOf(stat.Uid, c.identity.user.UID), Group: c.nameOf(stat.Gid, c.identity.user.GID),
		Modified: modified(stat.Mtim),
	}
	switch info.Kind {
	case channel.KindSymlink:
		info.Target, _ = readLink(dir, name) // it may be gone again
	case channel.KindFile, channel.KindDir:
		info.Metadata = metadata(dir, name)
	case channel.KindOther:
	}
	return info
}

// modified is a file's time, which its owner may have set to one that no message
// can carry.
func modified(t unix.Timespec) time.Time {
	const first, last = -62135596800, 253402300799 // the years 1 to 9999
	if t.Sec < first || t.Sec > last {
		return time.Unix(min(max(t.Sec, first), last), 0).UTC()
	}
	return time.Unix(t.Unix()).UTC()
}

func fileKind(mode uint32) channel.FileKind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return channel.KindFile
	case unix.S_IFDIR:
		return channel.KindDir
	case unix.S_IFLNK:
		return channel.KindSymlink
	default:
		return channel.KindOther
	}
}

// nameOf is the name of an id: the sandbox has two users, the others are numbers.
func (c *fileCall) nameOf(id uint32, users int) string {
	switch {
	case int(id) == users:
		return c.identity.user.Name
	case id == 0:
		return "root"
	default:
		return strconv.FormatUint(uint64(id), 10)
	}
}

// metadata reads the extended attributes of the user's own kind. One that
// can't be read, or is too long, is not told.
func metadata(dir int, name string) map[string]string {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	size, err := unix.Flistxattr(fd, nil)
	if err != nil || size == 0 {
		return nil
	}
	list := make([]byte, min(size, 64<<10))
	size, err = unix.Flistxattr(fd, list)
	if err != nil {
		return nil
	}
	var found map[string]string
	left, value := maxMetadataBytes, make([]byte, maxMetadataValue)
	for attribute := range strings.SplitSeq(string(list[:size]), "\x00") {
		key, ours := strings.CutPrefix(attribute, metadataPrefix)
		if !ours || key == "" || len(found) >= maxMetadata {
			continue
		}
		n, err := unix.Fgetxattr(fd, attribute, value)
		if err != nil || len(key)+n > left {
			continue
		}
		if found == nil {
			found = map[string]string{}
		}
		found[key] = string(value[:n])
		left -= len(key) + n
	}
	return found
}

// checkMetadata refuses what could not be told again.
func checkMetadata(metadata map[string]string) error {
	if len(metadata) > maxMetadata {
		return invalidFile("a file has at most %d metadata, not %d", maxMetadata, len(metadata))
	}
	size := 0
	for name, value := range metadata {
		if name == "" || len(name) > maxMetadataName || strings.ContainsRune(name, 0) {
			return invalidFile("%.80q can't name metadata: 1 to %d bytes, none of them zero", name, maxMetadataName)
		}
		if len(value) > maxMetadataValue {
			return invalidFile("the metadata %.80q has %d bytes; at most %d", name, len(value), maxMetadataValue)
		}
		size += len(name) + len(value)
	}
	if size > maxMetadataBytes {
		return invalidFile("the metadata has %d bytes; at most %d", size, maxMetadataBytes)
	}
	return nil
}

// setMetadata gives an open file its metadata, which not every file system keeps.
func setMetadata(fd int, path string, metadata map[string]string) error {
	for name, value := range metadata {
		switch err := unix.Fsetxattr(fd, metadataPrefix+name, []byte(value), 0); err {
		case nil:
		case unix.ENOTSUP:
			return invalidFile("the file system of %.300q keeps no metadata", path)
		default:
			return err
		}
	}
	return nil
}
