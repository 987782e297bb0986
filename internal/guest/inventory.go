package guest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
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
	t := &stocktaker{ctx: ctx, root: a.config.Root, seen: map[string]bool{}, listed: map[string]bool{}}
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
	listed map[string]bool // releases that are listed once, wherever they lie
	size   int             // bytes of JSON so far
	result channel.Inventory
}

// walk visits a directory and those below it. A dist-info directory is a
// package wherever it lies; a directory of installed packages is not searched
// deeper, for what is in it are the packages' own files.
func (t *stocktaker) walk(dir string, depth int) {
	children := t.visit(dir)
	base := filepath.Base(dir)
	leaf := base == "site-packages" || base == "dist-packages"
	for _, child := range children {
		path := filepath.Join(dir, child)
		switch {
		case strings.HasSuffix(child, ".dist-info"):
			t.addDistribution(path)
		case child == "node_modules":
			t.nodeModules(path, depth+1)
		case child == "@v":
			t.goVersions(path)
		case isGoModule(path):
			t.addGoModule(path)
		case leaf, child == ".git", child == "__pycache__", child == "_cacache":
		case child == "_vendor": // a package's own copies of others, which came with it
		case depth >= stockDepth:
			t.result.Truncated = true
		default:
			t.walk(path, depth+1)
		}
	}
}

// visit returns the directories in dir, in order, the first time that it is
// called for it and within the bounds.
func (t *stocktaker) visit(dir string) []string {
	if t.seen[dir] || isSystem(dir) {
		return nil
	}
	if t.ctx.Err() != nil || len(t.seen) >= stockDirs || t.size >= stockBytes {
		t.result.Truncated = true
		return nil
	}
	t.seen[dir] = true
	return t.entries(dir, fs.DirEntry.IsDir)
}

// entries are the names in dir that are wanted, in order; none if it is no
// directory. Links are not followed, so that the walk ends.
func (t *stocktaker) entries(dir string, wanted func(fs.DirEntry) bool) []string {
	entries, err := os.ReadDir(t.root + dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		if wanted(entry) {
			names = append(names, entry.Name())
		}
	}
	return names
}

// addDistribution takes a dist-info directory into the result. One whose
// metadata can't be read is taken by the directory's own name: hiding it would
// hide a package.
func (t *stocktaker) addDistribution(dir string) {
	name, version, err := readMetadata(t.root + dir + "/METADATA")
	if err != nil || name == "" {
		stem := strings.TrimSuffix(filepath.Base(dir), ".dist-info")
		name, version, _ = strings.Cut(stem, "-")
	}
	t.add(channel.InstalledPackage{Ecosystem: string(pkgref.Python), Name: name, Version: version, Path: dir})
}

// addOnce takes a release that may lie in many places: one is enough.
func (t *stocktaker) addOnce(p channel.InstalledPackage) {
	key := p.Ecosystem + "\x00" + p.Name + "\x00" + p.Version
	if t.listed[key] {
		return
	}
	t.listed[key] = true
	t.add(p)
}

// add takes a package into the result as far as it fits.
func (t *stocktaker) add(p channel.InstalledPackage) {
	if len(p.Name) > fieldBytes || len(p.Version) > fieldBytes || len(p.Path) > pathBytes {
		t.result.Truncated = true
		p.Name, p.Version, p.Path = p.Name[:min(len(p.Name), fieldBytes)], p.Version[:min(len(p.Version), fieldBytes)], p.Path[:min(len(p.Path), pathBytes)]
	}
	encoded, err := json.Marshal(p)
	if err != nil || t.size+len(encoded)+1 > stockBytes {
		t.result.Truncated = true
		return
	}
	t.size += len(encoded) + 1
	t.result.Packages = append(t.result.Packages, p)
}

// readMetadata reads Name and Version from a METADATA file's headers.
func readMetadata(path string) (name, version string, err error) {
	head, err := readHead(path)
	if err != nil {
		return "", "", err
	}
	name, version = parseMetadata(head)
	return name, version, nil
}

// readHead reads the beginning of a file. Only a regular file is read, and never
// for longer than it takes.
func readHead(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return io.ReadAll(io.LimitReader(file, metadataBytes))
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
