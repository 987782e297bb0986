package pip

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

var _ installer.SourceBuilder = client{}

// BuildSource implements installer.SourceBuilder.
func (client) BuildSource(url, sha256, folder string) []string {
	return []string{
		"python3", "-m", "pip", "wheel", "--no-deps", "--no-cache-dir", "--use-pep517", "--progress-bar", "off",
		"--wheel-dir", folder, url + "#sha256=" + sha256,
	}
}

// endOfOutput follows what the build itself wrote, in pip's own output.
const endOfOutput = "[end of output]"

// Complaint implements installer.SourceBuilder: the last line of the build itself.
func (client) Complaint(output string) string {
	at := strings.LastIndex(output, endOfOutput)
	if at < 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(output[:at]), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// BuiltSuffix implements installer.SourceBuilder.
func (client) BuiltSuffix() string { return ".whl" }
