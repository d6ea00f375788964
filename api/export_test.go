package api

import "github.com/gin-gonic/gin"

// Routes is every registered route.
func Routes(s *Server) (gin.RoutesInfo, error) {
	engine, err := s.routes()
	if err != nil {
		return nil, err
	}

	return engine.Routes(), nil
}
