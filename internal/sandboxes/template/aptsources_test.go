package template

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestOwnRepositories(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"Debian, one-line, with strangers": {
			map[string]string{
				"etc/os-release": "ID=debian\nVERSION_CODENAME=bookworm\n",
				"etc/apt/sources.list": `# comment
deb http://mirror.example/debian bookworm main contrib # trailing
deb [arch=amd64 signed-by=/etc/apt/keyrings/corp.gpg] https://tools.example/debian bookworm main
deb-src http://mirror.example/debian bookworm main
deb http://mirror.example/debian bookworm-backports main
`,
				"etc/apt/sources.list.d/engine.list": "deb [signed-by=/etc/apt/keyrings/engine.gpg] https://engine.example/linux/debian bookworm stable\n",
			},
			[]string{"deb http://mirror.example/debian bookworm main contrib"},
		},
		"Debian, deb822": {
			map[string]string{
				"etc/os-release": "ID=debian\nVERSION_CODENAME=trixie\n",
				"etc/apt/sources.list.d/debian.sources": `Types: deb deb-src
# a comment inside
URIs: http://mirror.example/debian
Suites: trixie trixie-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: trixie-security
Components: main
 contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: trixie
Components: main
`,
			},
			[]string{
				"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.example/debian trixie main",
				"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.example/debian trixie-updates main",
				"deb http://mirror.example/debian-security trixie-security main contrib",
			},
		},
		"Ubuntu": {
			map[string]string{
				"etc/os-release": "ID=ubuntu\nVERSION_CODENAME=noble\nUBUNTU_CODENAME=noble\n",
				"etc/apt/sources.list.d/ubuntu.sources": `Types: deb
URIs: http://mirror.example/ubuntu/
Suites: noble noble-updates noble-backports
Components: main universe
Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg
`,
			},
			[]string{
				"deb [signed-by=/usr/share/keyrings/ubuntu-archive-keyring.gpg] http://mirror.example/ubuntu/ noble main universe",
				"deb [signed-by=/usr/share/keyrings/ubuntu-archive-keyring.gpg] http://mirror.example/ubuntu/ noble-updates main universe",
			},
		},
		"a derivative": {
			map[string]string{
				"usr/lib/os-release":   "ID=linuxmint\nVERSION_CODENAME=wilma\nUBUNTU_CODENAME=noble\n",
				"etc/apt/sources.list": "deb http://mint.example wilma main\ndeb http://mirror.example/ubuntu noble main\n",
			},
			[]string{"deb http://mirror.example/ubuntu noble main"},
		},
		"a rolling suite": {
			map[string]string{
				"etc/os-release":       "ID=debian\n",
				"etc/apt/sources.list": "deb http://mirror.example/debian unstable main\n",
			},
			[]string{"deb http://mirror.example/debian unstable main"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for path, text := range c.files {
				put(t, filepath.Join(root, path), text, 0o644)
			}
			d, err := hostDistribution(root)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range d.sources {
				got = append(got, s.sourceLine())
			}
			if !slices.Equal(got, c.want) || d.codename == "" {
				t.Errorf("%s\ngot  %s\nwant %s", d.codename, strings.Join(got, "\n     "), strings.Join(c.want, "\n     "))
			}
		})
	}
}

func TestNoSources(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"none": "", "only strangers": "deb https://engine.example/linux bookworm stable\n"} {
		root := t.TempDir()
		put(t, filepath.Join(root, "etc/os-release"), "ID=debian\nVERSION_CODENAME=bookworm\n", 0o644)
		put(t, filepath.Join(root, "etc/apt/sources.list"), text, 0o644)
		if _, err := hostDistribution(root); !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzSources(f *testing.F) {
	f.Add("deb [signed-by=/k] http://mirror.example/debian bookworm main\n")
	f.Add("Types: deb\nURIs: http://mirror.example\nSuites: a b\n")
	f.Fuzz(func(_ *testing.T, text string) {
		parseOneLine(text)
		parseDeb822(text)
	})
}
