package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// outsideIn are the settings outside of a project that are found with a home directory that has such files, as text by text.
func outsideIn(t *testing.T, files map[string]string, more func(home string) error) (found []string, left string) {
	t.Helper()
	home := t.TempDir()
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": "", "GIT_CONFIG_GLOBAL": ""} {
		t.Setenv(name, value)
	}
	laidFiles(t, home, 0o644, files)
	if more != nil {
		if err := more(home); err != nil {
			t.Fatal(err)
		}
	}
	texts, left := lookOutside(t.TempDir())
	for _, one := range texts {
		found = append(found, string(one.Text))
	}
	return found, left
}

// TestSettingsThatAreReadOfAPerson: each of these may start what is brought over, however it is called. The controls are what a
// shell noted, and what a link to all of the host leads to.
func TestSettingsThatAreReadOfAPerson(t *testing.T) {
	files := map[string]string{
		".xsessionrc":                                "a login's\n",
		".config/systemd/user/backup.service":        "[Service]\nExecStart=unit\n",
		".config/autostart/session-tools.desktop":    "[Desktop Entry]\nExec=desktop\n",
		".gitconfig":                                 "[include]\n\tpath = gitwork\n[include]\n\tpath = \"my settings/git\"\n",
		"gitwork":                                    "[core]\n\thooksPath = plain\n",
		"my settings/git":                            "[core]\n\thooksPath = spaced\n",
		".bash_history":                              "noted\n",
		".config/tool/history.json":                  "noted too\n",
		".config/deep/a/b/c/settings/mcp.json":       "nested\n",
		".config/fish/conf.d/backup.fish":            "source nested\n",
		".config/tool/elsewhere/session/state.json":  "noted as well\n",
		".config/tool/elsewhere/settings/state.json": "set\n",
	}
	found, left := outsideIn(t, files, func(home string) error {
		return os.Symlink("/", filepath.Join(home, ".config", "drive"))
	})
	if left != "" {
		t.Errorf("%s was left out", left)
	}
	for name, text := range files {
		is := false
		for _, one := range found {
			is = is || one == text
		}
		if want := !strings.HasPrefix(text, "noted"); is != want {
			t.Errorf("%s: read %v, want %v", name, is, want)
		}
	}
	passwd, err := os.ReadFile("/etc/hostname")
	for _, one := range found {
		if err == nil && one == string(passwd) {
			t.Error("all of the host is looked through for settings")
		}
	}
}

// TestSettingsOfAPersonAreBounded: a text that names very much keeps no other from being read, all that is kept at once is
// bounded, and it is said that something was left out. The control has less.
func TestSettingsOfAPersonAreBounded(t *testing.T) {
	var words strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&words, "a/%d ", i)
	}
	large := func(home string) error {
		if err := os.MkdirAll(filepath.Join(home, ".config", "large"), 0o755); err != nil {
			return err
		}
		for i := range 20 {
			if err := os.WriteFile(filepath.Join(home, ".config", "large", fmt.Sprint(i, ".json")), make([]byte, 4<<20), 0o600); err != nil {
				return err
			}
		}
		return nil
	}
	for name, c := range map[string]struct {
		more func(home string) error
		left bool
	}{"control": {nil, false}, "many large ones": {large, true}} {
		t.Run(name, func(t *testing.T) {
			found, left := outsideIn(t, map[string]string{".claude.json": words.String() + strings.Repeat(" ", 2<<20), ".cursor/mcp.json": "cursor's"}, c.more)
			bytes, cursor := 0, false
			for _, one := range found {
				bytes += len(one)
				cursor = cursor || one == "cursor's"
			}
			if !cursor {
				t.Error("the settings of a program are not read, since another's name many files")
			}
			if bytes > mostSettingsTexts {
				t.Errorf("%d bytes are kept", bytes)
			}
			if many := strings.Contains(left, "large"); many != c.left {
				t.Errorf("left out: %q", left)
			}
		})
	}
}
