package guest

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
)

// process is one line of the process table.
type process struct {
	pid, parent, group, session int
	start                       uint64 // clock ticks since boot
	dead                        bool   // a zombie
}

// processTable reads every process of the sandbox. One that ends meanwhile is
// left out.
func processTable() (map[int]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	table := map[int]process{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, err := readProcess(pid); err == nil {
			table[pid] = p
		}
	}
	return table, nil
}

func readProcess(pid int) (process, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, err
	}
	return parseStat(pid, string(data))
}

// parseStat reads a stat line. Its second field is a name in parentheses that
// the process chooses, so the fields are counted from the last parenthesis.
func parseStat(pid int, line string) (process, error) {
	_, rest, ok := cutLast(line, ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return process{}, errors.New("the process table has a line that can't be read")
	}
	p := process{pid: pid, dead: fields[0] == "Z" || fields[0] == "X"}
	var failed error
	number := func(i int) int {
		n, err := strconv.Atoi(fields[i])
		failed = errors.Join(failed, err)
		return n
	}
	p.parent, p.group, p.session = number(1), number(2), number(3)
	start, err := strconv.ParseUint(fields[19], 10, 64)
	p.start = start
	return p, errors.Join(failed, err)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// marker is the command id in a process's environment, as far as the process
// has not overwritten it; "" if there is none.
func marker(pid int) string {
	file, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	defer file.Close()
	buf := make([]byte, 256<<10)
	n, _ := file.Read(buf)
	for variable := range bytes.SplitSeq(buf[:n], []byte{0}) {
		if id, ok := strings.CutPrefix(string(variable), markerVariable+"="); ok {
			return id
		}
	}
	return ""
}
