package guest

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

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
