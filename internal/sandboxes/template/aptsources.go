package template

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// aptSource is one suite of one repository that apt is set up to use.
type aptSource struct {
	uri        string
	suite      string
	components []string
	signedBy   string // a keyring's path, or empty
}

func (a aptSource) sourceLine() string {
	options := ""
	if a.signedBy != "" {
		options = "[signed-by=" + a.signedBy + "] "
	}
	return fmt.Sprintf("deb %s%s %s %s", options, a.uri, a.suite, strings.Join(a.components, " "))
}

// distribution is what the host's os-release says, and its own repositories.
type distribution struct {
	id       string // "debian", "ubuntu", ...
	codename string
	sources  []aptSource
}

// hostDistribution finds the host's distribution and, among apt's sources, the
// ones that are the distribution's own: third-party repositories are left out.
func hostDistribution(hostRoot string) (distribution, error) {
	release := osRelease(hostRoot)
	d := distribution{
		id:       release["ID"],
		codename: cmp.Or(release["UBUNTU_CODENAME"], release["DEBIAN_CODENAME"], release["VERSION_CODENAME"]),
	}
	all := readAptSources(hostRoot)
	if len(all) == 0 {
		return d, fault.New(fault.ErrUnavailable, "the debian template is built from the mirror that this host's apt uses, and apt has no sources here: use the template host, or build on a Debian or Ubuntu machine")
	}
	for _, s := range all {
		if ownRepository(s, d.codename) {
			s.signedBy = cmp.Or(s.signedBy, distributionKeyring(hostRoot, s))
			d.sources = append(d.sources, s)
		}
	}
	if len(d.sources) == 0 {
		return d, fault.New(fault.ErrUnavailable, "none of apt's sources on this host is a Debian or Ubuntu main repository of %q: check /etc/apt/sources.list.d", d.codename)
	}
	if d.codename == "" {
		d.codename, _, _ = strings.Cut(d.sources[0].suite, "-")
	}
	return d, nil
}

// ownRepository says whether a source is the distribution's: component main of
// its suite, signed by the distribution's key.
func ownRepository(s aptSource, codename string) bool {
	base, pocket, _ := strings.Cut(s.suite, "-")
	base, _, _ = strings.Cut(base, "/")
	if pocket != "" && pocket != "updates" && pocket != "security" {
		return false
	}
	rolling := []string{"stable", "oldstable", "oldoldstable", "testing", "unstable", "sid"}
	if base != codename && !slices.Contains(rolling, base) {
		return false
	}
	key := filepath.Base(s.signedBy)
	return slices.Contains(s.components, "main") &&
		(s.signedBy == "" || strings.HasPrefix(key, "debian-archive") || strings.HasPrefix(key, "ubuntu-archive"))
}

// distributionKeyring is the usual keyring for a source that names none, if
// apt's trusted keys may not have it.
func distributionKeyring(hostRoot string, s aptSource) string {
	for _, name := range []string{"debian", "ubuntu"} {
		if !strings.Contains(s.uri, name) {
			continue
		}
		for _, ext := range []string{".pgp", ".gpg"} {
			path := "/usr/share/keyrings/" + name + "-archive-keyring" + ext
			if _, err := os.Stat(filepath.Join(hostRoot, path)); err == nil {
				return path
			}
		}
	}
	return ""
}

// readAptSources reads sources.list and sources.list.d. It leaves out what it can't read: apt
// itself will say what is wrong with it.
func readAptSources(hostRoot string) []aptSource {
	etc := filepath.Join(hostRoot, "etc/apt")
	lists, _ := filepath.Glob(filepath.Join(etc, "sources.list.d/*.list"))
	var all []aptSource
	for _, path := range append([]string{filepath.Join(etc, "sources.list")}, lists...) {
		if raw, err := os.ReadFile(path); err == nil {
			all = append(all, parseOneLine(string(raw))...)
		}
	}
	stanzas, _ := filepath.Glob(filepath.Join(etc, "sources.list.d/*.sources"))
	for _, path := range stanzas {
		if raw, err := os.ReadFile(path); err == nil {
			all = append(all, parseDeb822(string(raw))...)
		}
	}
	return all
}

// oneLine matches "deb [options] URI SUITE COMPONENT...".
var oneLine = regexp.MustCompile(`^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+(\S.*)$`)

func parseOneLine(text string) []aptSource {
	var all []aptSource
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		m := oneLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		s := aptSource{uri: m[2], suite: m[3], components: strings.Fields(m[4])}
		for option := range strings.FieldsSeq(m[1]) {
			if path, ok := strings.CutPrefix(option, "signed-by="); ok {
				s.signedBy = path
			}
		}
		all = append(all, s)
	}
	return all
}

func parseDeb822(text string) []aptSource {
	var all []aptSource
	fields := map[string]string{}
	flush := func() {
		defer clear(fields)
		if !slices.Contains(strings.Fields(fields["types"]), "deb") || fields["enabled"] == "no" {
			return
		}
		signedBy := fields["signed-by"]
		if !strings.HasPrefix(signedBy, "/") {
			signedBy = "" // a key or fingerprint in place of a path
		}
		for uri := range strings.FieldsSeq(fields["uris"]) {
			for suite := range strings.FieldsSeq(fields["suites"]) {
				all = append(all, aptSource{uri, suite, strings.Fields(fields["components"]), signedBy})
			}
		}
	}
	key := ""
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			flush()
		case line[0] == ' ' || line[0] == '\t':
			fields[key] += " " + strings.TrimSpace(line)
		default:
			name, value, _ := strings.Cut(line, ":")
			key = strings.ToLower(strings.TrimSpace(name))
			fields[key] = strings.TrimSpace(value)
		}
	}
	flush()
	return all
}

// osRelease reads the host's os-release; empty if there is none.
func osRelease(hostRoot string) map[string]string {
	values := map[string]string{}
	for _, path := range []string{"etc/os-release", "usr/lib/os-release"} {
		raw, err := os.ReadFile(filepath.Join(hostRoot, path))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				values[key] = strings.Trim(value, `"'`)
			}
		}
		return values
	}
	return values
}
