package ui

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A column of a table that does not fit is made narrower down to leastCell characters;
// the last one is wrapped where leastLast are left for it.
const (
	leastCell = 12
	leastLast = 24
	gap       = 2 // between columns
)

// Columns aligns the cells of rows, which must be printable, without spaces at the ends of lines. Where lines
// would be longer than width (0: nobody minds), the last cells go on below themselves,
// and others are cut where that does not do.
func Columns(rows [][]string, width int) []string {
	widths := columnWidths(rows)
	left := 0 // of the last column
	for _, w := range widths {
		left += w + gap
	}
	last := 0
	for _, row := range rows {
		if len(row) > len(widths) {
			last = max(last, countCells(row[len(widths)]))
		}
	}
	if width <= 0 || left+last <= width {
		width = 0
	} else {
		narrow(widths, left+min(last, leastLast)-width)
	}
	var lines []string
	for _, row := range rows {
		lines = append(lines, rowLines(row, widths, width)...)
	}
	return lines
}

// columnWidths are those of all columns but the last.
func columnWidths(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i := range len(row) - 1 {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], countCells(row[i]))
		}
	}
	return widths
}

// narrow takes at least so much from the widths, from the widest first, as far as that
// goes.
func narrow(widths []int, much int) {
	for ; much > 0; much-- {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if len(widths) == 0 || widths[widest] <= leastCell {
			return
		}
		widths[widest]--
	}
}

// rowLines is a row in lines: one, unless its last cell has to be wrapped.
func rowLines(row []string, widths []int, width int) []string {
	var line strings.Builder
	at := 0
	for i, cell := range row[:max(0, len(row)-1)] {
		if width > 0 {
			cell = cutCell(cell, widths[i])
		}
		line.WriteString(cell + strings.Repeat(" ", widths[i]-countCells(cell)+gap))
		at += widths[i] + gap
	}
	last := ""
	if len(row) > 0 {
		last = row[len(row)-1]
	}
	var lines []string
	for _, part := range wrapText(last, width-at) {
		lines = append(lines, strings.TrimRight(line.String()+part, " "))
		line.Reset()
		line.WriteString(strings.Repeat(" ", at))
	}
	return lines
}

// cutCell keeps a cell to a width.
func cutCell(cell string, width int) string {
	if countCells(cell) <= width {
		return cell
	}
	return string([]rune(cell)[:width-3]) + "..."
}

// wrapText breaks text into lines of at most width characters, between words where that
// goes; with less than half of leastLast to break it in, it stays whole.
func wrapText(text string, width int) []string {
	if countCells(text) <= width || width < leastLast/2 { // negative: there is no width
		return []string{text}
	}
	var lines []string
	line := []rune{}
	for word := range strings.FieldsSeq(text) {
		letters := []rune(word)
		if len(line) > 0 && len(line)+1+len(letters) > width {
			lines, line = append(lines, string(line)), nil
		}
		if len(line) > 0 {
			line = append(line, ' ')
		}
		line = append(line, letters...)
		for len(line) > width {
			lines, line = append(lines, string(line[:width])), line[width:]
		}
	}
	return append(lines, string(line))
}

// countCells counts how many characters wide a printable text is.
func countCells(s string) int { return utf8.RuneCountInString(s) }

// WriteTable aligns columns, and fits them into a terminal; every cell is made printable here. An empty cell
// that is not at the end of its row shows as a dash.
func WriteTable(w io.Writer, rows [][]string) error {
	shown := make([][]string, len(rows))
	for n, row := range rows {
		shown[n] = make([]string, len(row))
		for i, cell := range row {
			shown[n][i] = Printable(cell)
			if cell == "" && i < len(row)-1 {
				shown[n][i] = "-"
			}
		}
	}
	for _, line := range Columns(shown, Width(w)) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
