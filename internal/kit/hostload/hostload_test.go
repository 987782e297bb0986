package hostload_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostload"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]hostload.Memory{
		"MemTotal:  1024 kB\nMemFree: 1 kB\nMemAvailable:   512 kB\n": {Total: 1 << 20, Available: 512 << 10},
		"MemAvailable: 0 kB\nMemTotal: 8 kB":                          {Total: 8 << 10},
	} {
		path := filepath.Join(dir, "good")
		write(t, path, text)
		if got, err := hostload.ReadMemory(path); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"":                             "does not tell",
		"MemTotal: 1024 kB\n":          "does not tell",
		"MemTotal: x\nMemAvailable: 1": "no number",
		"MemTotal: -1\n":               "no number",
		"MemTotal: 99999999999999999999 kB\nMemAvailable: 1": "no number",
		strings.Repeat("x", 1<<17):                           "token too long",
	} {
		path := filepath.Join(dir, "bad")
		write(t, path, text)
		if got, err := hostload.ReadMemory(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %+v, %v", text, got, err)
		}
	}
	if got, err := hostload.ReadMemory("/proc/meminfo"); err != nil || got.Total < got.Available || got.Available <= 0 {
		t.Errorf("this host's: %+v, %v", got, err)
	}
}

func TestPressure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got, err := hostload.ReadPressure(dir); err != nil || len(got) != 0 {
		t.Errorf("of a kernel that counts none: %v, %v", got, err)
	}
	write(t, filepath.Join(dir, "cpu"), "some avg10=12.50 avg60=1.00 avg300=0.10 total=99\n")
	write(t, filepath.Join(dir, "io"), "some avg10=50.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=25.00 avg60=0.00 avg300=0.00 total=0\n")
	got, err := hostload.ReadPressure(dir)
	if err != nil || len(got) != 2 || got["cpu"] != (hostload.Pressure{Some: 0.125}) || got["io"] != (hostload.Pressure{Some: 0.5, Full: 0.25}) {
		t.Errorf("%v, %v", got, err)
	}
	write(t, filepath.Join(dir, "memory"), "some thing\n")
	if _, err := hostload.ReadPressure(dir); err == nil || !strings.Contains(err.Error(), "no line of pressure") {
		t.Errorf("%v", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
