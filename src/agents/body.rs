//! Files whose beginning is known last: the body waits in a temporary file until the head is made.

use super::content::{Image, Part, missing_image};
use super::image::Limits;
use crate::record::{Error, Result};
use crate::stream::{Compression, Output, Placing, TEMPORARY};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Where a session goes.
#[derive(Debug)]
pub(in crate::agents) enum Target {
    /// Into the agent's store, as this file.
    Store(PathBuf),
    /// Elsewhere.
    File(PathBuf),
    /// To standard output.
    Stdout,
}

impl Target {
    pub(in crate::agents) fn path(&self) -> &Path {
        match self {
            Target::Store(file) | Target::File(file) => file,
            Target::Stdout => Path::new("-"),
        }
    }

    /// Head and body become the file.
    pub(in crate::agents) fn place(&self, head: &[u8], mut body: File) -> Result<()> {
        body.seek(SeekFrom::Start(0)).map_err(Error::io(TEMPORARY))?;
        match self {
            Target::Store(file) => {
                let mut placing = Placing::begin(file)?;
                let name = file.display().to_string();
                let out = placing.file();
                // file to file: the kernel copies
                out.write_all(head).and_then(|()| io::copy(&mut body, out)).map_err(Error::io(name))?;
                placing.persist()
            }
            Target::File(file) => {
                let mut placing = Placing::begin(file)?;
                let name = file.display().to_string();
                let copy = placing.file().try_clone().map_err(Error::io(&name))?;
                let mut out = Output::file(copy, name, Compression::of_name(file))?;
                pour(head, body, &mut out)?;
                out.finish()?;
                placing.persist()
            }
            Target::Stdout => {
                let mut out = Output::stdout()?;
                pour(head, body, &mut out)?;
                out.finish().map(|_| ())
            }
        }
    }
}

fn pour(head: &[u8], mut body: File, out: &mut Output) -> Result<()> {
    out.bytes(head)?;
    let mut block = vec![0; 256 << 10];
    loop {
        match body.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(n) => out.bytes(block.get(..n).unwrap_or_default())?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io(TEMPORARY)(e)),
        }
    }
}

/// The lines behind the head, in an unlinked temporary file; a dry run keeps nothing.
#[derive(Debug)]
pub(in crate::agents) struct Body {
    file: Option<BufWriter<File>>,
    /// Bytes put so far.
    length: u64,
    media: Vec<Placed>,
    /// Blocks that become something else in the end, in order.
    changed: Vec<(Range<u64>, Vec<u8>)>,
}

/// An image or a document that was put.
#[derive(Debug)]
struct Placed {
    block: Range<u64>,
    data: u64,
    /// Width and height in pixels, 0 where they are not known; `None` for a document.
    edges: Option<(u32, u32)>,
}

impl Placed {
    /// The text that stands for it.
    fn missing(&self, why: &str) -> String {
        match (self.edges, self.data) {
            (None, data) => format!("[document, {} bytes, {why}: not carried over]", data / 4 * 3),
            (Some((0, 0)), 0) => missing_image(why),
            (Some((0, 0)), data) => missing_image(&format!("{} bytes, {why}", data / 4 * 3)),
            (Some((width, height)), _) => missing_image(&format!("{width} by {height} pixels, {why}")),
        }
    }
}

/// What [`Body::settle`] took out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::agents) struct TakenOut {
    pub(in crate::agents) images: u64,
    pub(in crate::agents) documents: u64,
}

impl Body {
    pub(in crate::agents) fn new(dry_run: bool) -> Result<Body> {
        let file = match dry_run {
            true => None,
            false => {
                let file = tempfile::tempfile().map_err(Error::io(TEMPORARY))?;
                Some(BufWriter::with_capacity(256 << 10, file))
            }
        };
        Ok(Body { file, length: 0, media: Vec::new(), changed: Vec::new() })
    }

    pub(in crate::agents) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.length += bytes.len() as u64;
        match &mut self.file {
            Some(file) => file.write_all(bytes).map_err(Error::io(TEMPORARY)),
            None => Ok(()),
        }
    }

    /// Puts the block of an image, in pieces.
    pub(in crate::agents) fn image(&mut self, image: &Image<'_>, pieces: &[&[u8]]) -> Result<()> {
        self.medium(image.length(), Some(image.edges()), pieces)
    }

    /// Puts the block of a document.
    pub(in crate::agents) fn document(&mut self, block: &[u8]) -> Result<()> {
        self.medium(block.len() as u64, None, &[block])
    }

    fn medium(&mut self, data: u64, edges: Option<(u32, u32)>, pieces: &[&[u8]]) -> Result<()> {
        let start = self.length;
        for piece in pieces {
            self.put(piece)?;
        }
        self.media.push(Placed { block: start..self.length, data, edges });
        Ok(())
    }

    /// Holds the images and documents that were put to what one request may have. The newest ones stay; `text`
    /// makes the block that stands in the place of one that does not.
    pub(in crate::agents) fn settle(&mut self, limits: &Limits, text: impl Fn(&str) -> Vec<u8>) -> TakenOut {
        let (mut images, mut total) = (0, 0_u64);
        let mut gone = Vec::new();
        let mut stay = Vec::new();
        for medium in std::mem::take(&mut self.media).into_iter().rev() {
            total = total.saturating_add(medium.data);
            let image = usize::from(medium.edges.is_some());
            if images + image <= limits.count && total <= limits.total {
                images += image;
                stay.push(medium);
            } else {
                // an older one is not taken in the place of this one, though it may be smaller
                total = u64::MAX;
                gone.push((medium, "one of too many"));
            }
        }
        let (many, edge) = limits.many;
        if images > many {
            let big = |m: &Placed| m.edges.is_some_and(|(width, height)| width.max(height) > edge);
            gone.extend(stay.into_iter().filter(big).map(|image| (image, "too big for so many")));
        }
        gone.sort_by_key(|(medium, _)| medium.block.start);
        let mut taken = TakenOut::default();
        for (medium, why) in gone {
            match medium.edges {
                Some(_) => taken.images += 1,
                None => taken.documents += 1,
            }
            let instead = text(&medium.missing(why));
            self.changed.push((medium.block, instead));
        }
        taken
    }

    /// Texts on lines of their own, in one string.
    pub(in crate::agents) fn joined(&mut self, texts: &[Part<'_>]) -> Result<()> {
        for (n, text) in texts.iter().enumerate() {
            if n > 0 {
                self.put(b"\\n")?;
            }
            self.put(&text.body())?;
        }
        Ok(())
    }

    /// The file with all that was put; `None` for a dry run.
    pub(in crate::agents) fn finish(&mut self) -> Result<Option<File>> {
        let Some(file) = self.file.take() else { return Ok(None) };
        let failed = Error::io(TEMPORARY);
        let mut file = file.into_inner().map_err(|e| Error::io(TEMPORARY)(e.into_error()))?;
        if self.changed.is_empty() {
            return Ok(Some(file));
        }
        let changed = std::mem::take(&mut self.changed);
        let anew = || -> io::Result<File> {
            let mut out = BufWriter::with_capacity(256 << 10, tempfile::tempfile()?);
            let mut at = file.seek(SeekFrom::Start(0))?;
            for (range, text) in changed {
                io::copy(&mut (&file).take(range.start - at), &mut out)?;
                out.write_all(&text)?;
                at = file.seek(SeekFrom::Start(range.end))?;
            }
            io::copy(&mut file, &mut out)?;
            out.into_inner().map_err(io::IntoInnerError::into_error)
        };
        anew().map(Some).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::image::ANTHROPIC;
    use super::*;
    use std::borrow::Cow;

    /// What is left of images of these sizes (length of the base64 text, edge), each shown as a letter.
    fn left(images: &[(usize, u32)], limits: &Limits) -> (u64, String) {
        let mut body = Body::new(false).unwrap();
        for (n, (length, edge)) in images.iter().enumerate() {
            let letter = b"abcdefghijklmnopqrstuvwxyz"[n];
            let image = Image::Data { media_type: "image/png", data: Cow::Owned(vec![b'A'; *length]) };
            body.put(b"<").unwrap();
            body.image(&image, &[&[letter]]).unwrap();
            body.media.last_mut().unwrap().edges = Some((*edge, 1));
            body.put(b">").unwrap();
        }
        let lost = body.settle(limits, |text| text.as_bytes().to_vec());
        let mut text = String::new();
        let mut file = body.finish().unwrap().unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_string(&mut text).unwrap();
        (lost.images, text)
    }

    #[test]
    fn the_newest_images_that_one_request_may_have_stay() {
        let limits = Limits { count: 3, total: 100, many: (2, 9), ..ANTHROPIC };
        assert_eq!(left(&[(4, 9); 3], &limits), (0, "<a><b><c>".to_owned()));
        let (lost, text) = left(&[(4, 8), (4, 8), (4, 8), (4, 8)], &limits);
        assert_eq!(
            (lost, text.as_str()),
            (1, "<[image 8 by 1 pixels, one of too many: not carried over]><b><c><d>")
        );
        let (lost, text) = left(&[(4, 8), (60, 8), (44, 8)], &limits);
        assert!(lost == 2 && text.ends_with("over]><c>") && text.starts_with("<[image 8 by"), "{text}");
        // big ones are refused among many only
        assert_eq!(left(&[(4, 10), (4, 10)], &limits).0, 0);
        let (lost, text) = left(&[(4, 10), (4, 9), (4, 10)], &limits);
        assert_eq!(lost, 2);
        let gone = "<[image 10 by 1 pixels, too big for so many: not carried over]>";
        assert_eq!(text, format!("{gone}<b>{gone}"));
    }

    #[test]
    fn documents_count_by_their_size_alone() {
        let limits = Limits { count: 1, total: 100, ..ANTHROPIC };
        let image = Image::Url(Cow::Borrowed(b"https://a.b/c.png"));
        let put = |sizes: &[usize]| {
            let mut body = Body::new(true).unwrap();
            for size in sizes {
                body.document(&vec![b'A'; *size]).unwrap();
            }
            body.image(&image, &[b"<>"]).unwrap();
            body.settle(&limits, |text| text.as_bytes().to_vec())
        };
        assert_eq!(put(&[40, 40]), TakenOut::default());
        assert_eq!(put(&[40, 40, 40]), TakenOut { images: 0, documents: 1 });
    }
}
