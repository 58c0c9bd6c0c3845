package figure

import (
	"fmt"
	"strings"
)

// colours are those of a class: its surface, its line and its text.
type colours struct {
	class              Class
	surface, line, ink string
}

var light = []colours{
	{Plain, "#f3f5f7", "#97a3ae", "#1f2933"},
	{Muted, "#fbfcfc", "#cfd6dc", "#64707c"},
	{Lit, "#fff0cf", "#d58a00", "#5b3b00"},
	{Bad, "#fde4e1", "#c8372d", "#8e1f17"},
	{Good, "#dff3e6", "#2f8f5b", "#145a36"},
	{A, "#dfeafa", "#3f74c4", "#173f7c"},
	{B, "#e9e3f8", "#7a5cc0", "#452b83"},
	{C, "#dcf0ef", "#2b8a86", "#0e5552"},
}

var dark = []colours{
	{Plain, "#202933", "#6a7a8a", "#e6ebf0"},
	{Muted, "#181f27", "#3a4653", "#98a6b4"},
	{Lit, "#4a3510", "#e0a030", "#ffe3ad"},
	{Bad, "#4b1e1b", "#ef7d74", "#ffc9c4"},
	{Good, "#163d29", "#5fc48d", "#b9efd0"},
	{A, "#1b3354", "#6ea3ec", "#cfe1fb"},
	{B, "#332952", "#a88ee6", "#e0d6fb"},
	{C, "#123d3c", "#52bdb8", "#bfeeeb"},
}

// style returns the style sheet: the light colours, and the dark ones for readers who prefer them.
func style() string {
	const fonts = `text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;font-size:13px}
.code{font-family:ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace;font-size:12px}
.name{font-weight:600;font-size:12.5px}
.long{font-size:11.5px}
.small{font-size:11.5px}
.box{stroke-width:1.2}
.arrow{fill:none;stroke-width:1.4;stroke-linejoin:round}
.line{fill:none;stroke-width:1}
.frame{fill:none;stroke-width:1;stroke-dasharray:5 4}
.lit{stroke-width:1.8}
`
	var b strings.Builder
	b.WriteString(fonts)
	sheet(&b, light, "#ffffff", "#e2e6ea")
	b.WriteString("@media (prefers-color-scheme: dark){\n")
	sheet(&b, dark, "#12171d", "#2b343e")
	b.WriteString("}\n")
	return b.String()
}

func sheet(b *strings.Builder, all []colours, page, edge string) {
	fmt.Fprintf(b, ".page{fill:%s;stroke:%s}\n", page, edge)
	for _, c := range all {
		fmt.Fprintf(b, ".box.%[1]s{fill:%[2]s;stroke:%[3]s}.arrow.%[1]s,.line.%[1]s{stroke:%[3]s}"+
			".head.%[1]s{fill:%[3]s}.%[1]s-text{fill:%[4]s}\n", c.class, c.surface, c.line, c.ink)
		if c.class == Muted {
			fmt.Fprintf(b, ".frame{stroke:%s}\n", c.line)
		}
	}
}
