package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
)

// TestDocsSayTheDefaultLimits: the table of docs/policy.md is what a sandbox gets whose policy says
// nothing. COFFERDAM_UPDATE=1 writes it.
func TestDocsSayTheDefaultLimits(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- default limits: internal/sandboxes/sandbox checks them -->\n", "<!-- /default limits -->"
	page := filepath.Join("..", "..", "..", "docs", "policy.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table: %s%s", page, begin, end)
	}
	want := before + begin + defaultLimits(t) + end + after
	switch {
	case want == string(text):
	case os.Getenv("COFFERDAM_UPDATE") == "":
		t.Fatalf("COFFERDAM_UPDATE=1 writes the table of %s:\n%s", page, defaultLimits(t))
	default:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// defaultLimits is that table, of what the code gives an empty policy.
func defaultLimits(t *testing.T) string {
	t.Helper()
	empty, err := policy.Parse("empty.yaml", []byte("packages: { default: deny }"))
	if err != nil {
		t.Fatal(err)
	}
	l := limitsOf(empty)
	mib := func(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
	time := "none"
	if d := empty.Resources().Timeout; d > 0 {
		time = d.String()
	}
	var b strings.Builder
	b.WriteString("| limit | default | key |\n| --- | --- | --- |\n")
	for _, row := range [][3]string{
		{"processors", fmt.Sprint(l.CPU), "`defaults.max_cpu`"},
		{"memory, without swap", mib(l.MemoryBytes), "`defaults.max_memory_mb`"},
		{"new files", mib(l.DiskBytes), "`defaults.max_disk_mb`"},
		{"processes and threads", fmt.Sprint(l.Pids), "`defaults.max_pids`"},
		{"time of a command", time, "`defaults.timeout_seconds`"},
		{"`/dev/shm`", mib(l.SharedMemory()), "half of the memory"},
		{"`/tmp`", mib(temporaryBytes(l)), fmt.Sprintf("half of the memory, at most %s", mib(tmpBytes))},
		{"open files of a process", fmt.Sprint(defaultNoFile), ""},
		{"a command with its variables and directory, as JSON", fmt.Sprintf("%d bytes", commands.MaxCommand), ""},
		{"the variables of a sandbox, a command or a cell, as JSON", fmt.Sprintf("%d bytes", commands.MaxEnv), ""},
	} {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", row[0], row[1], row[2])
	}
	return b.String()
}

// TestDocsSayWhatAQuotaAdmits: where a policy says nothing, a quota of as many CPU as a sandbox has is
// one sandbox, and docs/operations.md says so with these numbers.
func TestDocsSayWhatAQuotaAdmits(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(text)), " ")
	for _, want := range []string{
		fmt.Sprintf("these are %d CPU, %d GiB of memory and %d GiB of disk", defaultCPU, defaultMemory>>30, defaultDisk>>30),
		fmt.Sprintf("a quota of %d CPU is one such sandbox", defaultCPU),
		fmt.Sprintf("give five of them `--cpu %d --memory %dGiB --disk %dGiB`", 5*defaultCPU, 5*defaultMemory>>30, 5*defaultDisk>>30),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/operations.md doesn't say %q", want)
		}
	}
}
