package process

import (
	"errors"
	"os"
	"strconv"
	"strings"
)

// Stat is one line of the process table.
type Stat struct {
	ID
	Parent, Group, Session int
	Dead                   bool // it has ended, and nobody has waited for it
	Stopped                bool // by a signal
}

// Table reads every process that is visible. One that ends meanwhile is left out.
func Table() (map[int]Stat, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	table := map[int]Stat{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, err := Read(pid); err == nil {
			table[pid] = p
		}
	}
	return table, nil
}

// Read reads the line of a number; ErrOver when nobody has it.
func Read(pid int) (Stat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) {
		return Stat{}, ErrOver
	}
	if err != nil {
		return Stat{}, asOver(err) // the file may be open already when its process goes
	}
	return Parse(pid, string(data))
}

// Parse reads a line. Its second field is a name in parentheses that the process
// chooses, so the fields are counted from the last parenthesis.
func Parse(pid int, line string) (Stat, error) {
	end := strings.LastIndex(line, ") ")
	if end < 0 {
		return Stat{}, errUnreadable()
	}
	fields := strings.Fields(line[end+2:])
	if len(fields) < 20 {
		return Stat{}, errUnreadable()
	}
	var failed error
	number := func(i int) int {
		n, err := strconv.Atoi(fields[i])
		failed = errors.Join(failed, err)
		return n
	}
	p := Stat{
		ID: ID{Pid: pid}, Dead: fields[0] == "Z" || fields[0] == "X", Stopped: fields[0] == "T",
		Parent: number(1), Group: number(2), Session: number(3),
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	p.Start = start
	return p, errors.Join(failed, err)
}

func errUnreadable() error {
	return errors.New("the process table has a line that can't be read")
}
