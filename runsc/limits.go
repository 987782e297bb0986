package main

import (
	"encoding/json"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// The arguments of the process that is a sandbox's kernel, which its parent puts together.
const (
	bootCommand = "boot"
	specFlag    = "--spec-fd="     // config.json, open: the process may not open it by its name
	memoryFlag  = "--total-memory" // its value is the next argument
	cpusFlag    = "--cpu-num"
)

// mostSpec bounds what is read of config.json, in bytes.
const mostSpec = 16 << 20

// leastCPUs is how many processors a sandbox has at least: with one, programs leave out locks
// that they need as soon as their threads are moved. runsc has the same floor.
const leastCPUs = 2

// withLimits has the kernel of a sandbox tell of the memory and the processors that its bundle's
// config.json gives it: in /proc/meminfo, by sysinfo and by sched_getaffinity, by which runtimes
// choose the sizes of their heaps and of their pools of threads. runsc does that itself of the
// control groups that it makes, and here others make those (--ignore-cgroups). The limits are not kept by
// this: the control group does that.
//
// Whatever is not as it is expected is left as it is. A kernel that starts itself again has its
// flags from the first start.
func withLimits(args []string, read func(fd int) []byte) []string {
	boot := slices.Index(args, bootCommand)
	at := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, specFlag) })
	if boot < 0 || at < boot {
		return args
	}
	fd, err := strconv.Atoi(strings.TrimPrefix(args[at], specFlag))
	if err != nil || fd < 0 {
		return args
	}
	memory, cpus := limitsOf(read(fd))
	args = slices.Clone(args)
	if at := slices.Index(args, memoryFlag); at > boot && at+1 < len(args) && memory > 0 {
		if told, err := strconv.ParseUint(args[at+1], 10, 64); err == nil {
			args[at+1] = strconv.FormatUint(min(told, memory), 10)
		}
	}
	told := func(arg string) bool { return arg == cpusFlag || strings.HasPrefix(arg, cpusFlag+"=") }
	if cpus > 0 && !slices.ContainsFunc(args, told) {
		args = slices.Insert(args, boot+1, cpusFlag, strconv.Itoa(min(max(cpus, leastCPUs), runtime.NumCPU())))
	}
	return args
}

// readAt reads an open file from its beginning, and leaves its offset as it is. nil: it can't be read whole.
func readAt(fd int) []byte {
	var text []byte
	part := make([]byte, 64<<10)
	for len(text) < mostSpec {
		n, err := syscall.Pread(fd, part, int64(len(text)))
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return nil
		}
		if n == 0 {
			return text
		}
		text = append(text, part[:n]...)
	}
	return nil
}

// limitsOf are those of a bundle's config.json, in bytes and processors; 0: none is given, or the
// file is not what is expected.
func limitsOf(config []byte) (memory uint64, cpus int) {
	var spec struct {
		Linux struct {
			Resources struct {
				Memory struct {
					Limit int64 `json:"limit"`
				} `json:"memory"`
				CPU struct {
					Quota  int64  `json:"quota"`
					Period uint64 `json:"period"`
				} `json:"cpu"`
			} `json:"resources"`
		} `json:"linux"`
	}
	if json.Unmarshal(config, &spec) != nil {
		return 0, 0
	}
	r := spec.Linux.Resources
	if r.CPU.Quota > 0 && r.CPU.Period > 0 {
		cpus = int(math.Ceil(float64(r.CPU.Quota) / float64(r.CPU.Period)))
	}
	return uint64(max(r.Memory.Limit, 0)), cpus
}
