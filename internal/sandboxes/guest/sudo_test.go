package guest

import (
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

func TestSudoReadsItsCommandLine(t *testing.T) {
	t.Setenv("SHELL", "/bin/sh")
	for line, want := range map[string]string{
		"id -u":                            "id -u",
		"-n id -u":                         "id -u",
		"-nE -u root -- id -n":             "id -n",
		"-uroot id":                        "id",
		"--user=root --non-interactive id": "id",
		"--user root id":                   "id",
		"-H A=1 B_2=x env -i":              "env -i",
		"-p prompt -h host id":             "id",
		"-s":                               "/bin/sh",
		"-s echo a":                        "/bin/sh -c echo a",
		"-i":                               "/bin/sh -l",
		"-v":                               "",
		"-k":                               "",
	} {
		asked, err := parseSudo(strings.Fields(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if err := asked.mayRun(1000); err != nil || strings.Join(asked.commandArgv(), " ") != want {
			t.Errorf("%s: %q, %v", line, asked.commandArgv(), err)
		}
	}
	if asked, err := parseSudo([]string{"A=1", "-E", "env"}); err != nil || !slices.Equal(asked.command, []string{"-E", "env"}) || asked.env[0] != "A=1" {
		t.Errorf("%+v, %v", asked, err)
	}
	for _, line := range []string{"-Z id", "-u", "--nothing id", "-b id", "-e file", "-u nobody-here id", "-u #4242 id"} {
		asked, err := parseSudo(strings.Fields(line))
		if err == nil {
			err = asked.mayRun(1000)
		}
		if err == nil {
			t.Errorf("%s: %+v", line, asked)
		}
	}
}

// TestSudoGainsNothing: under its name the agent's program runs a command as who asked:
// ids, capabilities and no_new_privs are those of any command. The control is the
// same command without it, and as root.
func TestSudoGainsNothing(t *testing.T) {
	s := configured(t, nil, nil)
	program, err := buildAgent()
	if err != nil {
		t.Fatal(err)
	}
	const posture = "grep -E '^(Uid|Gid|Groups|Cap...|NoNewPrivs)' /proc/self/status"
	s.sh("ln -s " + program + " ~/" + SudoName)
	asked := func(user string, argv ...string) string {
		e := s.run(channel.Exec{Argv: argv, User: user})
		return e.stdout.String() + e.stderr.String()
	}
	const sudo = "/home/agent/" + SudoName
	plain := asked("", "sh", "-c", posture)
	if got := asked("", sudo, "-n", "-u", "root", "sh", "-c", posture); got != plain || !strings.Contains(plain, "NoNewPrivs:\t1") {
		t.Errorf("with sudo:\n%s\nwithout:\n%s", got, plain)
	}
	if root := asked("root", "sh", "-c", posture); root == plain {
		t.Error("root's commands look as the user's: nothing was compared")
	}
	if got := asked("", sudo, "-n", "sh", "-c", "cat /proc/1/environ"); !strings.Contains(got, "denied") {
		t.Errorf("it read root's: %q", got)
	}
	if got := asked("", sudo, "-l"); got != sudoNothing {
		t.Errorf("got %q", got)
	}
}
