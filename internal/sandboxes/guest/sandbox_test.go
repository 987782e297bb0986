package guest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// status picks fields of /proc/self/status as a command sees them.
func (s *sandboxed) status(user string) map[string]string {
	s.t.Helper()
	e := s.run(channel.Exec{Argv: []string{"cat", "/proc/self/status"}, User: user})
	fields := map[string]string{}
	for line := range strings.Lines(e.stdout.String()) {
		key, value, _ := strings.Cut(line, ":")
		fields[key] = strings.Join(strings.Fields(value), " ")
	}
	return fields
}

// Commands have no capabilities and no way to gain any, root's too (C-KE-04).
func TestPostureOfCommands(t *testing.T) {
	s := configured(t, nil, nil)
	const none = "0000000000000000"
	for user, id := range map[string]string{"": "1000", "agent": "1000", "root": "0"} {
		got := s.status(user)
		got["SigIgn"] = withoutInternal(t, got["SigIgn"])
		want := map[string]string{
			"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none, "NoNewPrivs": "1",
			"Uid": strings.Join([]string{id, id, id, id}, " "), "Gid": strings.Join([]string{id, id, id, id}, " "),
			"Groups": "", "Umask": "0022", "SigIgn": none, "SigBlk": none,
		}
		for field, value := range want {
			if got[field] != value {
				t.Errorf("user %q: %s is %q, want %q", user, field, got[field], value)
			}
		}
	}
}

// withoutInternal takes the C library's own two signals (32 and 33) out of a
// mask: its posix_spawn, which make uses, leaves them ignored for good.
func withoutInternal(t *testing.T, mask string) string {
	t.Helper()
	bits, err := strconv.ParseUint(mask, 16, 64)
	if err != nil {
		t.Fatalf("%q is no signal mask", mask)
	}
	return fmt.Sprintf("%016x", bits&^(3<<31))
}

// The positive control: what PID 1 itself has does not look like that.
func TestPostureOfTheAgent(t *testing.T) {
	s := configured(t, nil, nil)
	e := s.run(channel.Exec{Argv: []string{"cat", "/proc/1/status"}})
	want := uint64(0)
	for _, c := range agentCapabilities() {
		want |= 1 << c
	}
	want &= ownCapabilities(t) // a machine may have withheld some from us
	for line := range strings.Lines(e.stdout.String()) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		n, err := strconv.ParseUint(value, 16, 64)
		switch key {
		case "CapEff", "CapPrm":
			if err != nil || n != want {
				t.Errorf("%s is %x, want %x", key, n, want)
			}
		case "CapBnd", "CapInh", "CapAmb":
			if err != nil || n != 0 {
				t.Errorf("%s is %x, want nothing", key, n)
			}
		case "NoNewPrivs":
			if value != "1" {
				t.Error("the agent may gain privileges")
			}
		}
	}
	if e.stdout.Len() == 0 {
		t.Error("the agent's status can't be read")
	}
}

// ownCapabilities are what this test process may give to a sandbox.
func ownCapabilities(t *testing.T) uint64 {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
	return uint64(data[1].Permitted)<<32 | uint64(data[0].Permitted)
}

// limits, session, descriptors.
func TestSurroundingsOfCommands(t *testing.T) {
	s := configured(t, nil, nil)
	tests := map[string]struct{ script, want string }{
		"limits":       {"awk '/processes|open files/ {print $(NF-2), $(NF-1)}' /proc/self/limits", "200 200\n2048 2048\n"},
		"descriptors":  {"ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 "},
		"home":         {"pwd; stat -c '%u %a' .; touch x; echo $HOME $USER $LOGNAME $GREETING", "/home/agent\n1000 755\n/home/agent agent agent hello\n"},
		"path":         {"echo $PATH", "/home/agent/.local/bin:" + systemPath + ":" + toolDir + "\n"},
		"host":         {"hostname; cat /etc/hostname; head -1 /etc/resolv.conf; head -1 /etc/hosts", "box\nbox\nnameserver 127.0.0.1\n127.0.0.1 localhost box\n"},
		"canary":       {"env | grep -c CANARY; cat /proc/1/environ 2>/dev/null | grep -c CANARY; true", "0\n0\n"},
		"agent's fds":  {"readlink /proc/1/fd/* /proc/1/root /proc/1/exe | wc -l; cat /proc/1/mem /proc/1/environ 2>/dev/null | wc -c", "0\n0\n"},
		"trust":        {"cat $NODE_EXTRA_CA_CERTS; tail -4 $SSL_CERT_FILE | head -1", testCA + "-----BEGIN CERTIFICATE-----\n"},
		"trust is set": {"touch /run/cofferdam/tls/ca.pem 2>&1 | grep -c -i denied", "1\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := s.sh(test.script); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	e := s.run(channel.Exec{Argv: []string{"sh", "-c", "id -u; id -un; pwd; echo $HOME $USER; hostname other 2>&1 | grep -c -i -e permi -e must; mount -t tmpfs x /mnt 2>&1 | grep -c -i -e permi -e must; chown 1000 /etc/hostname 2>&1 | grep -c -i permi; readlink /proc/1/fd/* /proc/1/root /proc/1/exe | wc -l"}, User: "root"})
	if got, want := e.stdout.String(), "0\nroot\n/root\n/root root\n1\n1\n1\n0\n"; got != want {
		t.Errorf("root without capabilities: %q, want %q\n%s", got, want, e.stderr.String())
	}
}

// setuid gains nothing (C-KE-04).
func TestSetuidGainsNothing(t *testing.T) {
	s := configured(t, nil, nil)
	e := s.run(channel.Exec{Argv: []string{"sh", "-c", "for f in /bin/su /bin/mount /usr/bin/passwd /usr/bin/sudo; do [ -u $f ] && echo $f; done; true"}})
	if e.stdout.Len() == 0 {
		t.Fatal("there is no setuid program here to try")
	}
	file := strings.Fields(e.stdout.String())[0]
	running := s.start(channel.Exec{Argv: []string{"sh", "-c", "echo $$; read x; exec " + file + " --no-such-option"}, Stdin: true})
	running.until("\n")
	running.send(channel.FrameStdin, []byte("\n"))
	running.send(channel.FrameStdin, nil)
	running.wait()
	e = s.run(channel.Exec{Argv: []string{"su", "-c", "id -u"}})
	if strings.TrimSpace(e.stdout.String()) == "0" {
		t.Error("su became root")
	}
}

// A terminal's other side belongs to the user, who can open it by name.
func TestTerminalOfTheUser(t *testing.T) {
	s := configured(t, nil, nil)
	e := s.run(channel.Exec{Argv: []string{"sh", "-c", "echo one > $(tty); echo two > /dev/tty"}, PTY: &channel.WindowSize{Rows: 24, Cols: 80}})
	if got := e.stdout.String(); got != "one\r\ntwo\r\n" {
		t.Errorf("got %q", got)
	}
}

// Nothing from inside ends the agent, and its end is the sandbox's (C-LI-03).
func TestAgentSurvivesTheInside(t *testing.T) {
	s := configured(t, nil, nil)
	for _, signal := range []string{"TERM", "INT", "HUP", "QUIT", "KILL", "STOP", "SEGV", "ABRT", "USR1", "PIPE", "TRAP", "SYS", "BUS", "ILL", "PROF"} {
		s.run(channel.Exec{Argv: []string{"kill", "-" + signal, "1"}, User: "root"})
		s.run(channel.Exec{Argv: []string{"kill", "-" + signal, "1"}})
	}
	s.mustCall(channel.Call{Kind: channel.CallPing})
	e := s.start(channel.Exec{Argv: []string{"sh", "-c", "trap '' TERM; (setsid sleep 1000 &); echo ready; sleep 1000"}})
	e.until("ready")
	_ = s.session.Close()
	s.ended <- <-s.ended
	if err := s.process.Signal(unix.Signal(0)); err == nil {
		t.Error("PID 1 outlived its channel")
	}
}

// A fork bomb meets the limit and its timeout; the agent answers meanwhile (C-RE-01).
// The host's kernel counts a user's processes across these namespaces, so that the bomb
// is of a user whom no other test has: theirs could not fork while it runs.
func TestForkBomb(t *testing.T) {
	s := startSandbox(t, nil)
	own := sandboxConfigure(nil)
	own.User.UID, own.User.GID = 1_000_000+unix.Getpid(), 1_000_000+unix.Getpid()
	s.mustCall(channel.Call{Kind: channel.CallConfigure, Configure: own})
	bomb := s.start(channel.Exec{ID: "bomb", Argv: []string{"sh", "-c", "echo go; b() { b | b & }; (b); read x"}, Stdin: true, Timeout: 1500})
	bomb.until("go")
	if e := s.run(channel.Exec{ID: "other", Argv: []string{"true"}, User: "root"}); e.exit.Code != 0 {
		t.Errorf("while the bomb runs: %+v", *e.exit)
	}
	if exit := bomb.wait(); exit.Error != "" || !exit.TimedOut {
		t.Errorf("%+v", exit)
	}
	if got := s.sh("ls /proc | grep -c '^[0-9]'"); len(strings.TrimSpace(got)) > 1 {
		t.Errorf("%s processes are left", got)
	}
}

// Configure done again, as after a restore, changes what differs and no more.
func TestConfigureAgain(t *testing.T) {
	s := configured(t, []string{"index.example"}, nil)
	s.sh("echo mine > ~/file")
	passwd := s.sh("grep -c agent: /etc/passwd; getent hosts index.example")
	again := sandboxConfigure([]string{"index.example"})
	again.Hostname, again.Env = "fork", map[string]string{"GREETING": "again"}
	s.mustCall(channel.Call{Kind: channel.CallConfigure, Configure: again})
	if got := s.sh("grep -c agent: /etc/passwd; getent hosts index.example"); got != passwd {
		t.Errorf("got %q, before %q", got, passwd)
	}
	if got := s.sh("cat ~/file; hostname; echo $GREETING"); got != "mine\nfork\nagain\n" {
		t.Errorf("got %q", got)
	}
	s.sh("mkdir ~/in && ln -s /etc ~/out")
	again.Owned = []string{"in"}
	s.mustCall(channel.Call{Kind: channel.CallConfigure, Configure: again})
	again.Owned = []string{"out/ssl"}
	stream, reply := s.call(channel.Call{Kind: channel.CallConfigure, Configure: again})
	defer stream.Close()
	if reply.OK || !strings.Contains(reply.Error, "a directory of the home can't be the user's") {
		t.Errorf("what a link leads to became the user's: %+v", reply)
	}
}

func TestBadConfigure(t *testing.T) {
	s := startBare(t, nil)
	tests := map[string]func(*channel.Configure){
		"host name": func(c *channel.Configure) { c.Hostname = "a b" },
		"user":      func(c *channel.Configure) { c.User.Name = "root:x" },
		"home":      func(c *channel.Configure) { c.User.Home = "home" },
		"CA":        func(c *channel.Configure) { c.CAPEM = []byte("no") },
		"name":      func(c *channel.Configure) { c.Names = []string{"Index.example."} },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			c := testConfigure(t)
			spoil(c)
			stream, reply := s.call(channel.Call{Kind: channel.CallConfigure, Configure: c})
			defer stream.Close()
			if reply.OK || reply.Error == "" {
				t.Errorf("got %+v", reply)
			}
		})
	}
	stream, reply := s.call(channel.Call{Kind: "no-such-call"})
	defer stream.Close()
	if reply.OK || !strings.Contains(reply.Error, "does not know") {
		t.Errorf("got %+v", reply)
	}
}

// Only `why`, `request` and `help` exist inside.
func TestCommandLineInside(t *testing.T) {
	s := configured(t, nil, func(open channel.Open, _ *channel.Conn) channel.Reply {
		if open.Kind == channel.OpenRequest {
			return channel.Reply{OK: true, Text: open.Request.Items[0].Name + " " + open.Request.Because + "\n"}
		}
		if open.Kind != channel.OpenWhy {
			return channel.Reply{Error: "refused"}
		}
		if open.ID == "nosuch" {
			return channel.Reply{Code: channel.CodeNotFound, Error: "nothing was refused under nosuch"}
		}
		if open.ID == "broken" {
			return channel.Reply{Error: "it can't be read"}
		}
		if open.JSON {
			return channel.Reply{OK: true, Text: "{" + open.ID + "}\n"}
		}
		if open.ID != "" {
			return channel.Reply{OK: true, Text: "about " + open.ID + "\n"}
		}
		return channel.Reply{OK: true, Text: "nothing was refused\n"}
	})
	tests := map[string]struct {
		args []string
		code int
		out  string
	}{
		"why":      {[]string{"why"}, 0, "nothing was refused\n"},
		"why json": {[]string{"why", "--json"}, 0, "{}\n"},
		"why id":   {[]string{"why", "ap-k3m7qx"}, 0, "about ap-k3m7qx\n"},
		"why both": {[]string{"why", "--json", "k3m7qx"}, 0, "{k3m7qx}\n"},
		"behind":   {[]string{"why", "k3m7qx", "--json"}, 0, "{k3m7qx}\n"},
		"no such":  {[]string{"why", "nosuch"}, 2, ""},
		"broken":   {[]string{"why", "broken"}, 1, ""},
		"two ids":  {[]string{"why", "k3m7qx", "k3m7qy"}, 2, ""},
		"no id":    {[]string{"why", "--all"}, 2, ""},
		"bad id":   {[]string{"why", "K;3"}, 2, ""},
		"help":     {[]string{"help"}, 0, help},
		"none":     {nil, 0, help},
		"request":  {[]string{"request", "python", "rich", "--because", "it is needed"}, 0, "rich it is needed\n"},
		"bad wish": {[]string{"request", "ruby", "rails"}, 2, ""},
		"approve":  {[]string{"approve", "1"}, 2, ""},
		"run":      {[]string{"run", "--", "true"}, 2, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := s.run(channel.Exec{Argv: append([]string{s.binary}, test.args...)})
			if e.exit.Code != test.code || e.stdout.String() != test.out || (test.code != 0) != (e.stderr.Len() > 0) {
				t.Errorf("%+v %q %q", *e.exit, e.stdout.String(), e.stderr.String())
			}
		})
	}
}
