package guest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// addDistribution takes a dist-info or egg-info into the result; file is that
// with its metadata, "" if it is that file itself. One whose metadata can't be
// read is taken by its own name: hiding it would hide a package.
func (t *stocktaker) addDistribution(path, file string) {
	own, err := recall(t.memory, filepath.Join(t.root+path, file), headMetadata, func(head []byte) (n named) {
		n.name, n.version = parseMetadata(head)
		return n
	})
	if err != nil || own.name == "" {
		stem := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		own.name, own.version, _ = strings.Cut(stem, "-")
	}
	from, err := recall(t.memory, t.root+path+"/direct_url.json", headDirect, installedFrom)
	if err != nil {
		from = "" // most have no such file
	}
	t.add(channel.InstalledPackage{Ecosystem: string(pkgref.Python), Name: own.name, Version: own.version, Path: path, From: from})
}

// installedFrom takes from which directory, or from which built file, an installer says
// that it installed a package (PEP 610); "" if it was neither, or not of this disk.
func installedFrom(head []byte) string {
	var direct struct {
		URL         string           `json:"url"`
		DirInfo     *json.RawMessage `json:"dir_info"`
		ArchiveInfo *json.RawMessage `json:"archive_info"`
	}
	if json.Unmarshal(head, &direct) != nil || direct.DirInfo == nil && direct.ArchiveInfo == nil {
		return ""
	}
	u, err := url.Parse(direct.URL)
	if err != nil || u.Scheme != "file" || u.Host != "" || !filepath.IsAbs(u.Path) {
		return ""
	}
	return filepath.Clean(u.Path)
}

// addSources takes the packages that are written in a directory; a Python
// project's version is often nowhere but in what is built of it, and so is the name
// that a setup.py works out.
func (t *stocktaker) addSources(dir string, files []string) {
	for _, file := range []string{"pyproject.toml", "setup.cfg", "setup.py"} {
		if !slices.Contains(files, file) {
			continue
		}
		name, err := recall(t.memory, t.root+dir+"/"+file, headProject, func(head []byte) string { return projectName(file, head) })
		if err == nil && (name != "" || file == "setup.py") {
			t.addSource(channel.InstalledPackage{Ecosystem: string(pkgref.Python), Name: name, Path: dir})
			break
		}
	}
	if slices.Contains(files, "package.json") {
		if own, err := t.manifest(dir); err == nil && own.name != "" {
			t.addSource(channel.InstalledPackage{Ecosystem: string(pkgref.Node), Name: own.name, Version: own.version, Path: dir})
		}
	}
}

// setupName is how a setup.py names its package, if it does so plainly.
var setupName = regexp.MustCompile(`\bname\s*=\s*["']([A-Za-z0-9._-]+)["']`)

// projectName takes a project's name from the beginning of its file: without a
// reader of the whole format, what is written in an unusual way is not found.
func projectName(file string, head []byte) string {
	if file == "setup.py" {
		if m := setupName.FindSubmatch(head); m != nil {
			return string(m[1])
		}
		return ""
	}
	section := ""
	for line := range strings.Lines(string(head)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[] ")
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.TrimSpace(key) != "name" || section != "project" && section != "tool.poetry" && section != "metadata" {
			continue
		}
		value, _, _ = strings.Cut(value, "#")
		return strings.Trim(strings.TrimSpace(value), `"'`)
	}
	return ""
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
