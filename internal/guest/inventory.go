package guest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// Bounds of one inventory. What lies past them is left out and the result says
// that it is truncated.
const (
	stockTime     = 5 * time.Second
	stockDepth    = 32 // source trees are deep, too
	stockDirs     = 30_000
	stockBytes    = 160 << 10 // of JSON; as base64 within channel.MaxJSON
	metadataBytes = 64 << 10
	fieldBytes    = 256 // of a name or version
	pathBytes     = 1024
)

// inventory answers with the packages that are installed in the sandbox.
func (a *Agent) inventory(ctx context.Context, stream *channel.Conn) error {
	a.stock.Lock()
	defer a.stock.Unlock()
	ctx, cancel := context.WithTimeout(ctx, stockTime)
	defer cancel()
	t := &stocktaker{ctx: ctx, root: a.config.Root, seen: map[string]bool{}}
	for _, place := range a.stockPlaces() {
		t.walk(place, 0)
	}
	body, err := json.Marshal(t.result)
	if err != nil {
		return reply(stream, err)
	}
	return stream.WriteJSON(channel.FrameReply, channel.Reply{OK: true, Body: body})
}

// stockPlaces are where to look, those first that a command can write to.
func (a *Agent) stockPlaces() []string {
	places := []string{"/workspace", "/opt", "/root", "/srv", "/tmp", "/var/tmp", "/home"}
	if identity, err := a.current(); err == nil {
		places = append([]string{identity.user.Home}, places...)
		if identity.workspace != "" {
			places = append(places, filepath.Clean(identity.workspace))
		}
	}
	places = append(places, a.mounts()...)
	for _, pattern := range []string{"/usr/local/lib/python3*", "/usr/lib/python3*"} {
		found, _ := filepath.Glob(a.config.Root + pattern) // the pattern is well formed
		for _, place := range found {
			places = append(places, strings.TrimPrefix(place, a.config.Root))
		}
	}
	return places
}

// mounts are the mount points that may hold somebody's files.
func (a *Agent) mounts() []string {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || a.config.Root != "" {
		return nil
	}
	var places []string
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		place := unescapeMount(fields[4])
		if place != "/" && !strings.HasPrefix(place, "/usr") && !isSystem(place) {
			places = append(places, place)
		}
	}
	slices.Sort(places)
	return places
}

// unescapeMount undoes the kernel's octal escapes of blanks and backslashes.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// isSystem tells whether a path belongs to the kernel or to the agent.
func isSystem(path string) bool {
	for _, system := range []string{"/proc", "/sys", "/dev", "/run", "/etc", "/.cofferdam"} {
		if path == system || strings.HasPrefix(path, system+"/") {
			return true
		}
	}
	return false
}

// stocktaker walks directories and collects what is installed there.
type stocktaker struct {
	ctx    context.Context //nolint:containedctx // lives for one call, and every step of the walk needs it
	root   string
	seen   map[string]bool // directories visited
	size   int             // bytes of JSON so far
	result channel.Inventory
}

// walk visits a directory and those below it. A dist-info directory is a
// package wherever it lies; a directory of installed packages is not searched
// deeper, for what is in it are the packages' own files.
func (t *stocktaker) walk(dir string, depth int) {
	if t.seen[dir] || isSystem(dir) {
		return
	}
	if t.ctx.Err() != nil || len(t.seen) >= stockDirs || t.size >= stockBytes {
		t.result.Truncated = true
		return
	}
	t.seen[dir] = true
	children, err := t.children(dir)
	if err != nil {
		return // not there, or not a directory
	}
	base := filepath.Base(dir)
	leaf := base == "site-packages" || base == "dist-packages"
	for _, child := range children {
		path := filepath.Join(dir, child)
		switch {
		case strings.HasSuffix(child, ".dist-info"):
			t.add(path)
		case leaf, child == "node_modules", child == ".git", child == "__pycache__":
		case child == "_vendor": // a package's own copies of others, which came with it
		case depth >= stockDepth:
			t.result.Truncated = true
		default:
			t.walk(path, depth+1)
		}
	}
}

// children are the names of the directories in dir, in order. Links are not
// followed, so that the walk ends.
func (t *stocktaker) children(dir string) ([]string, error) {
	entries, err := os.ReadDir(t.root + dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// add takes a dist-info directory into the result. One whose metadata can't be
// read is taken by the directory's own name: hiding it would hide a package.
func (t *stocktaker) add(dir string) {
	name, version, err := readMetadata(t.root + dir + "/METADATA")
	if err != nil || name == "" {
		stem := strings.TrimSuffix(filepath.Base(dir), ".dist-info")
		name, version, _ = strings.Cut(stem, "-")
	}
	if len(name) > fieldBytes || len(version) > fieldBytes || len(dir) > pathBytes {
		t.result.Truncated = true
		name, version, dir = name[:min(len(name), fieldBytes)], version[:min(len(version), fieldBytes)], dir[:min(len(dir), pathBytes)]
	}
	found := channel.InstalledPackage{Ecosystem: string(pkgref.Python), Name: name, Version: version, Path: dir}
	encoded, err := json.Marshal(found)
	if err != nil || t.size+len(encoded)+1 > stockBytes {
		t.result.Truncated = true
		return
	}
	t.size += len(encoded) + 1
	t.result.Packages = append(t.result.Packages, found)
}

// readMetadata reads Name and Version from a METADATA file's headers. Only a
// regular file is read, and never for longer than it takes.
func readMetadata(path string) (name, version string, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", "", err
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", "", err
	}
	if !info.Mode().IsRegular() {
		return "", "", errors.New("not a regular file")
	}
	head, err := io.ReadAll(io.LimitReader(file, metadataBytes))
	if err != nil {
		return "", "", err
	}
	name, version = parseMetadata(head)
	return name, version, nil
}

// parseMetadata takes the first Name and the first Version from the headers,
// which end at an empty line.
func parseMetadata(head []byte) (name, version string) {
	lines := bufio.NewScanner(bytes.NewReader(head))
	lines.Buffer(nil, metadataBytes+1)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), "\r")
		if line == "" {
			break
		}
		key, value, ok := strings.Cut(line, ":")
		switch {
		case !ok:
		case name == "" && strings.EqualFold(key, "Name"):
			name = strings.TrimSpace(value)
		case version == "" && strings.EqualFold(key, "Version"):
			version = strings.TrimSpace(value)
		}
	}
	return name, version
}
