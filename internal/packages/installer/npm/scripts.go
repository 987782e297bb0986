package npm

import (
	_ "embed"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

var _ installer.SourceBuilder = client{}

//go:embed scripts.js
var runScripts string

// BuildSource implements installer.SourceBuilder: what is built is the package without the
// install scripts that ran. Node's other clients have the same packages, so that npm runs
// the scripts for all of them.
func (client) BuildSource(url, sha256, folder string) []string {
	return []string{"node", "-e", runScripts, url, sha256, folder}
}

// Complaint implements installer.SourceBuilder: the last line of the scripts themselves,
// which npm's own account of the failure follows.
func (client) Complaint(output string) string {
	said := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "npm error"), strings.HasPrefix(line, "npm ERR!"):
			return said
		case line != "" && !strings.HasPrefix(line, ">") && !strings.HasPrefix(line, "npm "):
			said = line
		}
	}
	return ""
}

// BuiltSuffix implements installer.SourceBuilder.
func (client) BuiltSuffix() string { return ".tgz" }
