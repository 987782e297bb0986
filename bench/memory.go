package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// memory adds what the three roles use now. The proportional share (PSS) stands
// in the median's place, the resident size (RSS) beside it: the three share
// the pages of one binary.
func (b *bench) memory(when string) error {
	pids, err := b.daemon.awaitRoles()
	if err != nil {
		return err
	}
	for _, role := range measuredRoles {
		pss, rss, err := memoryOf(pids[role])
		if err != nil {
			return err
		}
		b.table.Memory = append(b.table.Memory, use{Role: role, When: when, PSS: pss, RSS: rss})
	}
	return nil
}

var measuredRoles = []string{"daemon", "keeper", "gateway"}

// awaitRoles gives the process of each measured role. A child that the daemon has just made bears the
// daemon's own command line for a moment, so one that is not there yet is waited for, ten seconds at most.
func (d *daemonProcess) awaitRoles() (map[string]int, error) {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		pids, err := d.roles()
		if err != nil {
			return nil, err
		}
		missing := slices.IndexFunc(measuredRoles, func(role string) bool { return pids[role] == 0 })
		if missing < 0 {
			return pids, nil
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("there is no process of the %s", measuredRoles[missing])
		}
	}
}

// use is what one process uses, in MB (1e6).
type use struct {
	Role string  `json:"role"`
	When string  `json:"when"`
	PSS  float64 `json:"pss_mb"`
	RSS  float64 `json:"rss_mb"`
}

// roles finds the daemon's children by what they were told to be.
func (d *daemonProcess) roles() (map[string]int, error) {
	found := map[string]int{"daemon": d.cmd.Process.Pid}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 || string(fields[1]) != strconv.Itoa(d.cmd.Process.Pid) {
			continue
		}
		args, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if parts := strings.Split(string(args), "\x00"); len(parts) > 1 {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				return nil, err
			}
			found[parts[1]] = pid
		}
	}
	return found, nil
}

func memoryOf(pid int) (pss, rss float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, 0, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 {
			continue
		}
		kilobytes, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			continue
		}
		switch fields[0] {
		case "Pss:":
			pss = kilobytes * 1024 / 1e6
		case "Rss:":
			rss = kilobytes * 1024 / 1e6
		}
	}
	return pss, rss, lines.Err()
}

// highest is the most that a role had resident since it started, in MB.
func (b *bench) highest(role string) (float64, error) {
	roles, err := b.daemon.roles()
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", roles[role]))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return 0, fmt.Errorf("the kernel does not say how much memory the %s had", role)
	}
	kilobytes, err := strconv.ParseFloat(fields[0], 64)
	return kilobytes * 1024 / 1e6, err
}
