package templatebuild

import (
	"strings"
	"testing"
)

func TestReadApt(t *testing.T) {
	t.Parallel()
	const sdk = "apt-get update && DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes apt-get install -y "
	for command, want := range map[string]struct {
		names      string
		recommends bool
		sudo       bool
		rest       string
	}{
		sdk + "git curl": {"git curl", true, false, ""},

		sdk + "--no-install-recommends vim": {"vim", false, false, ""},

		sdk + "--no-install-recommends --fix-missing g++=4:12.2.0-3": {"g++=4:12.2.0-3", false, false, ""},

		"apt-get update": {"", false, false, ""},

		"sudo apt-get update && sudo -E apt install -yq jq && jq --version | head -1": {"jq", true, true, "jq --version | head -1"},

		"apt-get update \\\n && apt-get install -y \\\n jq \\\n tree && rm -rf /var/lib/apt/lists/*": {"jq tree", true, false, "rm -rf /var/lib/apt/lists/*"},

		"sudo apt-get update && apt-get install jq": {"jq", true, false, ""},
	} {
		got, rest, err := readApt(command)
		if err != nil || got == nil {
			t.Errorf("%q: %v, %v", command, got, err)
			continue
		}
		if strings.Join(got.names, " ") != want.names || got.recommends != want.recommends || got.sudo != want.sudo || rest != want.rest {
			t.Errorf("%q: %+v and %q, want %+v", command, got, rest, want)
		}
	}
}

// TestWhatIsNoApt: what only a shell understands is left to one, whole.
func TestWhatIsNoApt(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		"echo apt-get install jq", "apt-get install $(id)", "apt-get install jq; id", "apt-get install jq | tee log", "apt-get install 'jq'", "apt-get install jq\nid",
		"cd /tmp && apt-get install jq", "apt-get install jq &", "apt-cache search jq", "", "sudo id", "A=b", "apt-get install j*",
	} {
		if got, rest, err := readApt(command); got != nil || rest != command || err != nil {
			t.Errorf("%q: %+v, %q, %v", command, got, rest, err)
		}
	}
	for command, says := range map[string]string{
		"apt-get install -o Dir=/x jq": "the option -o", "apt-get install --allow-unauthenticated jq": "the option --allow-unauthenticated", "apt-get install ./x.deb": "no name of a package",
		"apt-get install bash-": "no name of a package", "apt-get upgrade -y": "apt-get upgrade -y is not done in a build", "apt-get remove jq": "is not done in a build",
		"apt-get update now": "is not done in a build", "apt-get": "is not done in a build", "apt install " + strings.Repeat("jq ", 201): "at most 200",
	} {
		if got, _, err := readApt(command); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %+v, %v; want %q", command, got, err, says)
		}
	}
	for command, want := range map[string]bool{"x; apt-get install y": true, "apt install z": true, "echo adapt-get x": false, "mapt x": false} {
		if callsApt(command) != want {
			t.Errorf("callsApt(%q) is not %v", command, want)
		}
	}
}
