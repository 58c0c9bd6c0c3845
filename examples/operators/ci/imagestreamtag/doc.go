// Package imagestreamtag turns ImageStreams into their tags. A change of a stream becomes a key for every tag that
// changed, and the image that a tag points at is looked up together with its description.
package imagestreamtag
