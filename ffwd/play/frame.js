/* The page in a frame of a notebook: messages between the frame and the kernel, both ways. */
export default {
  render({ model, el }) {
    const frame = document.createElement("iframe");
    frame.title = "ffwd play";
    // Nothing of the notebook's style or scripts meets the page's.
    frame.sandbox = "allow-scripts allow-downloads";
    frame.style.cssText = "width:100%;height:1100px;border:0";
    const own = `page-${Math.random()}`;
    const asked = (event) => {
      if (event.source === frame.contentWindow && event.data && event.data.ffwd) model.send(event.data);
    };
    const answered = (message) => {
      if (!message || !message.ffwd) return;
      if (message.ffwd === own) frame.srcdoc = message.page;
      else if (frame.contentWindow) frame.contentWindow.postMessage(message, "*");
    };
    window.addEventListener("message", asked);
    model.on("msg:custom", answered);
    el.append(frame);
    model.send({ ffwd: own, page: true });
    return () => {
      window.removeEventListener("message", asked);
      model.off("msg:custom", answered);
    };
  },
};
