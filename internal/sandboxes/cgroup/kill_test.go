package cgroup

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// TestANumberThatIsAnothers: a process that has left, whose number somebody else has
// by the time that it is to be killed, costs nobody his life.
func TestANumberThatIsAnothers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test makes a control group on the host: run it as root")
	}
	g, err := New(Config{Parent: "cofferdam-test-kill-" + strconv.Itoa(os.Getpid())}).Create("", "one", Limits{Pids: 20})
	if err != nil {
		t.Fatal(err)
	}
	begin := func() (cmd *exec.Cmd, in io.Writer, out *bufio.Reader) {
		cmd = exec.CommandContext(t.Context(), "cat")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, stdin, bufio.NewReader(stdout)
	}
	member, _, _ := begin()
	other, in, out := begin()
	for _, join := range g.Joins() {
		if err := os.WriteFile(join, []byte(strconv.Itoa(member.Process.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g.killMembers([]int{other.Process.Pid, member.Process.Pid})
	if err := member.Wait(); err == nil {
		t.Error("the one in the group was not killed")
	}
	if _, err := io.WriteString(in, "alive\n"); err != nil {
		t.Error(err)
	}
	if line, err := out.ReadString('\n'); line != "alive\n" {
		t.Errorf("the one beside the group says %q, %v", line, err)
	}
	_ = other.Process.Kill() // it is this test's
	_ = other.Wait()
	if err := g.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}
