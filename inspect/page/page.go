// Package page has the files of the page that package inspect serves: HTML, JavaScript modules and a stylesheet, as
// the browser gets them. Nothing generates them, and they load nothing from elsewhere.
//
// index.html holds the frame of the page. app.js connects the address, the stream and the views. server.js sends
// requests to the process, and nothing else does. stream.js is the connection to the process; state.js holds the last
// samples and makes rates of them; dom.js builds elements, of text only. Each of the other modules is one view, or a
// part of one.
package page

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed assets
var assets embed.FS

// Handler serves the files.
func Handler() http.Handler {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // The folder is embedded.
	}
	return http.FileServerFS(files)
}
